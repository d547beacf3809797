"""Effects in order: what happens to one run and to one attempt."""
