"""The demo: scripted agents on a temporary repository."""
