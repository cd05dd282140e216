"""The requests of a run, in order of arrival: what the simulator serves, wherever they came from.

A request that starts when another one ends (the next turn of a conversation, the next call of an agent) names it in
``after``; its ``arrive_s`` is then the pause between the two. Requests with equal ``prefix_ids`` share the leading
blocks of their token sequences (prompt, then answer).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """Arrays with one entry a request, sorted by arrival (followers behind the request that they follow).

    Optional columns may be empty arrays: nobody follows anybody, nothing is shared, one client, one priority.
    """

    arrive_s: Floats  # from the start of the run; for a follower, the pause after its predecessor's end
    input_tokens: Ints
    output_tokens: Ints
    after: Ints = field(default_factory=NONE.copy)  # index of the predecessor, -1 = none
    session: Ints = field(default_factory=NONE.copy)  # equal for requests of one conversation, -1 = none
    client: Ints = field(default_factory=NONE.copy)  # who asks, 0, 1, …: fair queues share among clients
    model: Ints = field(default_factory=NONE.copy)  # that each asks for: the number of its pool; empty: any pool
    adapter: Ints = field(default_factory=NONE.copy)  # that each chooses, 0 the most popular; -1 = none
    priority: Floats = field(default_factory=lambda: np.zeros(0))  # lower goes first
    origin: Ints = field(default_factory=NONE.copy)  # where each one's client is, 0, 1, …; empty: all in one place
    origin_names: tuple[str, ...] = ()  # as a trace calls those; a request of none has -1
    prefix_start: Ints = field(default_factory=NONE.copy)  # n + 1 offsets into prefix_ids
    prefix_ids: Ints = field(default_factory=NONE.copy)  # dense ids 0, 1, … of blocks, in order of the sequence
    prefix_block_tokens: int = 0  # tokens of one such block; 0 = nothing is shared
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many requests there are."""
        return self.arrive_s.size
