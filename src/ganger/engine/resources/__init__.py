"""What all attempts of a run use."""
