"""What becomes of an attempt's changes: in the project's folder, or in git."""
