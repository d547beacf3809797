"""A forge on loopback: real git behind it, answers by the published schemas, CI as scripted."""
