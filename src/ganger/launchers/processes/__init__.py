"""Processes the keeper holds: how they are started, limited, adopted and ended."""
