"""Event stores behind the Store port."""
