"""Read models for every screen, built only from the events."""
