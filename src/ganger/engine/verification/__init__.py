"""Runs checks on a folder, and finds out what a green check proves."""
