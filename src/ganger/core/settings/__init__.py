"""Settings: where each has an effect, and names that are almost right."""
