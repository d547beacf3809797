"""Escape probes: what a hostile agent would try, where it is tried, and what held."""
