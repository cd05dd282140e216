"""Results of a live run: tokens as they come out, and the state of every replica."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.tables import _kernel as tables

GOES_ON, FINISHED, REFUSED, FAILED = 0, tables.DONE, tables.REFUSED, tables.FAILED
"""State of a request after a row: it has more to come; its answer is complete; it can never fit; it was lost with
its replica, or there was none left to serve it.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenEvents:
    """Rows in order of time: tokens that a step has made (``num_tokens`` > 0), and ends (``end`` not 0, no tokens)."""

    id: Ints
    time_s: Floats  # the end of the step
    num_tokens: Ints  # more than one where guessed tokens were accepted
    end: Ints

    @staticmethod
    def of(rows: Sequence[Ints], times: Sequence[Floats]) -> "TokenEvents":
        """Several runs of rows, one after the other."""
        if not rows:
            return NOTHING
        table = rows[0] if len(rows) == 1 else np.concatenate(rows)
        return TokenEvents(
            id=table[:, tables.E_NUMBER],
            time_s=np.concatenate(times),
            num_tokens=table[:, tables.E_TOKENS],
            end=table[:, tables.E_END],
        )


_NONE = np.zeros(0, dtype=np.int64)
NOTHING = TokenEvents(id=_NONE, time_s=np.zeros(0), num_tokens=_NONE, end=_NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestProgress:
    """Progress of one request so far."""

    replica: int  # that it is on, or was last
    admitted_s: float  # first time in a batch; nan: not yet
    cached_tokens: int  # of its prompt, found in the prefix cache
    num_preemptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """Every replica at a moment; sums since the start where it does not say otherwise. Prompt tokens count when the
    first token is out, those of the prefix cache when a request is first let into a batch."""

    is_up: Ints  # 1, or 0 for one that was lost
    running: Ints  # now: in the batch, or with a seat in it
    waiting: Ints  # now
    cache_frac: Floats  # now: of the cache's bytes, used by somebody
    steps: Ints
    prompt_tokens: Ints
    answer_tokens: Ints
    preemptions: Ints
    queried_tokens: Ints  # prompt tokens that were looked up in the prefix cache
    hit_tokens: Ints  # those that were found
