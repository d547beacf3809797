"""The `scripted` kind: behaviours played from a file."""
