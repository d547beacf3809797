"""Tests of workspaces and of safeguards for changes."""
