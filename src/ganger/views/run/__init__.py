"""What the state of a run shows: tasks, workers, deliveries, questions, costs, and why a task waits."""
