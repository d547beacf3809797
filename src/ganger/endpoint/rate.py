"""Rate limit per token: a bucket that refills with time."""

from __future__ import annotations

from collections import OrderedDict


class Pace:
    """`rate` requests a second, `burst` at once; only the `most` latest tokens are remembered. A request that costs
    more than is left is accepted anyway, and everything after it waits accordingly."""

    def __init__(self, rate: float = 50.0, burst: float = 100.0, most: int = 4096) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_sec(self, token: str, now: float, cost: float = 1.0) -> float:
        """0 if the request is accepted and counted; else how long to wait."""
        left, since = self._buckets.pop(token, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        may = left >= 1.0
        self._buckets[token] = (left - cost if may else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if may else (1.0 - left) / self._rate
