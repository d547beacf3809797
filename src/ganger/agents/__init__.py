"""Agent adapters: one file per kind of CLI, one line each in the table."""
