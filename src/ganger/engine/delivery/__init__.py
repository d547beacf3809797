"""A change's way from the run's branch to DONE."""
