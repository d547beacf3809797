"""Tests of the known test runners."""
