"""HTTP to a forge's host: deadlines, repeats, limits, one client per host."""
