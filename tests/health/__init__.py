"""Tests of workers that misbehave, hang, die or come back."""
