"""The stores that the promise suite runs on: one line each."""

from __future__ import annotations

from collections.abc import Callable

from checker.memory_store import MemoryStores
from ganger.ports.store import RunStores
from ganger.stores.sqlite import SqliteStores
from tests.promises.folder_store import FolderStores

KINDS: dict[str, Callable[[], RunStores]] = {
    "memory": MemoryStores,
    "sqlite": SqliteStores,
    "folder": FolderStores,
}
