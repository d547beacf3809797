"""Tests of delivery, against forges on loopback."""
