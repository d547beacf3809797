"""Direct mode: changes in the project's own folder, with a way back."""
