"""The state of a run, and the one place where events change it."""
