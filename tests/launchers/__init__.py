"""Tests of the keeper, which holds processes."""
