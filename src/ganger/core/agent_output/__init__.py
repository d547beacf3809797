"""What an agent's output says: waiting prompts, costs, whole lines."""
