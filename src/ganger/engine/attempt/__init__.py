"""One attempt, from its prompt to its end."""
