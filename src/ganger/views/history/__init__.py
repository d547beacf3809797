"""What journal and logs show: events, patches, signs of an agent, a replay."""
