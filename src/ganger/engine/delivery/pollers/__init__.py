"""What is asked of remotes and forges again and again, for all that wait."""
