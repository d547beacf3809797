"""Tests of commands, as a user calls them."""
