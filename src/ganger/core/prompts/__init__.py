"""Prompts: their parts, and how many tokens they have."""
