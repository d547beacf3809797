"""Checks run on a folder, and what a green one proves."""
