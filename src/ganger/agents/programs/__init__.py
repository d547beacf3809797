"""Adapters of real agent programs: one file each."""
