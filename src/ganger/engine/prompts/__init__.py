"""Prompt assembly, and the parts a worker may ask for."""
