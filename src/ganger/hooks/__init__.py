"""Hooks in other programs' sessions: how they are installed and removed, and what they do when they are called."""
