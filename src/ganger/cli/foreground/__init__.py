"""A run in a terminal: driven, shown, detached."""
