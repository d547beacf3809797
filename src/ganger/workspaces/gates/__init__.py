"""Gate files: what the checks read, call and name."""
