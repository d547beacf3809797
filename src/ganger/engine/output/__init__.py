"""What a run writes for people and other tools."""
