"""What people decide: commands, questions, reviews."""
