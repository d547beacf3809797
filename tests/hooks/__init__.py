"""Tests of hooks and notices."""
