"""The hosts in use: one client for each, shared by all its repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ganger.forges.settings import ForgeAddress, ForgeSettings

if TYPE_CHECKING:
    from ganger.forges.http.client import Client


class Hosts:
    """A client is closed with the last repository of its host."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._users: dict[str, int] = {}

    def take(self, address: ForgeAddress, settings: ForgeSettings) -> Client:
        # Importing the HTTP library takes a tenth of a second, so it is imported only if a host is called.
        from ganger.forges.http.client import Client

        origin = address.origin
        if origin not in self._clients:
            self._clients[origin] = Client(address, settings)
        self._users[origin] = self._users.get(origin, 0) + 1
        return self._clients[origin]

    async def give_back(self, client: Client) -> None:
        origin = client.address.origin
        self._users[origin] -= 1
        if self._users[origin] == 0:
            del self._users[origin]
            await self._clients.pop(origin).close()

    @property
    def per_minute(self) -> dict[str, int]:
        """Requests in the last sixty seconds, by host."""
        return {client.address.name: client.per_minute for client in self._clients.values()}
