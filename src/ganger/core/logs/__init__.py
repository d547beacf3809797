"""Logs of checks and CI jobs: what failed, and why."""
