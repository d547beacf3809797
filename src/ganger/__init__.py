"""Ganger runs fleets of coding agents over a manifest of tasks and believes nothing it has not verified."""

__version__ = "0.1.0"
