"""Polls remotes and forges on behalf of all tasks that wait."""
