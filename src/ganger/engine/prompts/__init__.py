"""Prompts put together, and the parts a worker may ask for."""
