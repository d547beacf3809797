"""Walls around untrusted processes behind the Sandbox port."""
