"""Settings: where each has an effect, and names that are nearly right."""
