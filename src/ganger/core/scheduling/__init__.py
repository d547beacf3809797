"""What starts now, what waits, and when a run ends."""
