"""How a change leaves the run's branch: pushes, change requests, merges, reviews, and what each of them proves."""
