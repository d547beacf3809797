"""Process hosts behind the Launcher port."""
