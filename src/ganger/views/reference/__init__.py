"""What can be looked up: codes, schemas, names of broken rules, where settings act."""
