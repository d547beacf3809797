"""Tests of sandboxes, and of escapes from them."""
