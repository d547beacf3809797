"""Webhooks of forges: received, verified, and used only to look sooner."""
