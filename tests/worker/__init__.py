"""Tests of the worker's own commands."""
