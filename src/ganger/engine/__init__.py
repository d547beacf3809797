"""Effects in order: what happens to a run and to each attempt."""
