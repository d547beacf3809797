"""Which tasks there are, and in which order they run."""
