"""Tests of the endpoint where workers report."""
