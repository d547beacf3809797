"""Healing: when, and what a patch may do."""
