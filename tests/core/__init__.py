"""Tests of what is decided without touching anything."""
