"""Heal rounds, and prompts with patches folded in."""
