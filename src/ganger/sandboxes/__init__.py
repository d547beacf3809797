"""Sandboxes for untrusted processes, behind the Sandbox port."""
