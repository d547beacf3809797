"""Tests that every adapter of a port must pass."""
