"""Workers that report, ask for work and are monitored."""
