"""Sends a run's events to programs and people outside: one file per channel; no channel can delay the lead."""
