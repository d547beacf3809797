"""Failures: their classes, what follows from each, and why an agent has no result."""
