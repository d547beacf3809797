"""A project and its ground checked before a run."""
