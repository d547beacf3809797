"""Remotes: their addresses, and what is pushed to them."""
