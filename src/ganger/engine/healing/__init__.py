"""Heal rounds, and prompts with patches applied."""
