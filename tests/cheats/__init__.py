"""Tests of checks that a change tries to cheat."""
