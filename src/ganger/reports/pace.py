"""How often each token may ask: a bucket per token that fills again with time."""

from __future__ import annotations

from collections import OrderedDict


class Pace:
    """`rate` a second, `burst` at once; only the `most` tokens that asked last are remembered. What costs more than is
    left is let through all the same, and everything after it waits for as long."""

    def __init__(self, rate: float = 50.0, burst: float = 100.0, most: int = 4096) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_sec(self, token: str, now: float, cost: float = 1.0) -> float:
        """0: it may ask, and has; else how long until it may."""
        left, since = self._buckets.pop(token, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        may = left >= 1.0
        self._buckets[token] = (left - cost if may else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if may else (1.0 - left) / self._rate
