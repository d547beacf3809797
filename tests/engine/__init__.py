"""Tests of runs, from a manifest to their end."""
