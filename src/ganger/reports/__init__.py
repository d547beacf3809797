"""Where workers reach whoever leads the run: a Unix socket, loopback HTTP, and MCP on both."""
