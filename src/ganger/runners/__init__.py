"""Test runners behind the Runners port, each with a case in `table.py`."""
