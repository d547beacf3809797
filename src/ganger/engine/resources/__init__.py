"""What every attempt of a run uses."""
