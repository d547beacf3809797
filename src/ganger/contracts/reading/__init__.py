"""Documents and agents' answers, read: strict JSON, safe YAML, and the last fenced block of a log."""
