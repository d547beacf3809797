"""Healing: when it happens, and what a patch may do."""
