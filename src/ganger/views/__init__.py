"""Read models for every screen, built from the events alone."""
