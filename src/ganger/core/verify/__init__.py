"""Verification: commands, tiers, environment, and which tests ran."""
