"""One call of an agent, as worker, healer or reviewer: starting it, reading its output, explaining a missing result."""
