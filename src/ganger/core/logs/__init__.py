"""Logs of checks and CI jobs, read for what failed and why."""
