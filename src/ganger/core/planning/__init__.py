"""What is to be done, and in which order."""
