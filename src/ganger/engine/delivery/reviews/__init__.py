"""Reviews: asked for, polled, and done by an agent."""
