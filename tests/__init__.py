"""The tests; see CONTRIBUTING.md, Tests."""
