"""How an attempt's changes are verified and delivered: in the project's folder, or in git."""
