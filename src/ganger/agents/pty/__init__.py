"""The `pty` kind: programs that only talk to a person at a terminal."""
