"""Tests that kill what runs, and of the harness that does it."""
