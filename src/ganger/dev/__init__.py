"""Tools for people who write agents: a server that plays a model from a script, on loopback."""
