"""Changes put onto the run's branch, one after the other, and pushed."""
