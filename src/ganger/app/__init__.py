"""Puts a project's parts together and runs what commands need; it alone names concrete adapters."""
