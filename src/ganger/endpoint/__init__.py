"""The endpoint where workers reach the run's lead: a Unix socket, loopback HTTP, and MCP on both."""
