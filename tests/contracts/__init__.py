"""Tests of the published formats and of how answers are read."""
