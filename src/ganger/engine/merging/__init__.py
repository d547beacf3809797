"""Merges changes into the run's branch, one after the other, and pushes them."""
