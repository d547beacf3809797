"""The confined process: its user, environment, limits and program."""
