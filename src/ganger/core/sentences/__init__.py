"""Events in plain words, and which of them are told outside."""
