"""Change requests: opened, kept current, merged."""
