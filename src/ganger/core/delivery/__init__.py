"""A change's way out of the run's branch: pushes, change requests, merges, reviews, and what each is proof of."""
