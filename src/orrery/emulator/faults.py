"""Requests that fail on purpose, as those of a service under strain do."""

import random

from orrery.emulator.refusal import RequestError

KINDS = (
    (500, "Failed on purpose (--failure-rate)."),
    (503, "Unavailable on purpose (--failure-rate)."),
    (429, "Turned away on purpose (--failure-rate)."),
)


class Faults:
    """A share of all requests, which may change while the server runs."""

    def __init__(self, failure_frac: float, seed: int) -> None:
        self.failure_frac, self._chance = failure_frac, random.Random(seed)

    def strike(self) -> None:
        """Let this request through, or refuse it."""
        if self._chance.random() < self.failure_frac:
            status, message = self._chance.choice(KINDS)
            raise RequestError(status, message, headers=((b"retry-after", b"1"),) if status != 500 else ())
