"""The demo: a scripted fleet on a throw-away repository."""
