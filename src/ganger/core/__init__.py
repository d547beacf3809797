"""The pure core: events go in, state changes, decisions come out. No clock, no I/O, no waiting."""
