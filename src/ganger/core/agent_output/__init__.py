"""What an agent's output tells: waiting prompts, costs, whole lines."""
