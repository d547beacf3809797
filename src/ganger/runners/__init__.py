"""Known test runners behind the Runners port: one file each, and one line of `table.py`."""
