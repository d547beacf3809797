"""What a change may hold, wherever it comes from."""
