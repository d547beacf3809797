"""Fault harnesses: kill, starve and cut off a real `ganger run` at chosen points, and judge what is left."""
