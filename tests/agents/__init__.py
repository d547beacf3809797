"""Tests of agents: their adapters, and real agent programs."""
