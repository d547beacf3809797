"""The `acp` kind: any program that speaks the Agent Client Protocol."""
