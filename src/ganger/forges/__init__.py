"""Forges: where commits are pushed to and CI runs on them."""

from __future__ import annotations

from ganger.forges.http.hosts import Hosts
from ganger.forges.settings import ForgeSettings, Patience
from ganger.ports.forge import Forge

__all__ = ["ForgeSettings", "Hosts", "Patience", "open_forge"]


def open_forge(kind: str, settings: ForgeSettings, hosts: Hosts | None = None) -> Forge:
    """`hosts` is shared by all that are open, so that one host has one client, one limit and one breaker."""
    # What speaks HTTP is loaded with the first forge that does.
    from ganger.forges.table import opened

    return opened(kind, settings, hosts or Hosts())
