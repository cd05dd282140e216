"""Turns of sessions on one clock: when each comes, whose it is, how long, and what it shares with the one before."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """One request a row, in the order of their times; ``chain`` is one agent of one session."""

    at_s: Floats
    session: Ints
    chain: Ints
    input_tokens: Ints
    output_tokens: Ints
    shared_tokens: Ints  # of the prompt, its beginning, that the chain's turn before had too
    think_s: Floats  # from the answer before to this turn: tools and people

    @property
    def count(self) -> int:
        """Return the number of turns."""
        return int(self.at_s.size)


def started(turns: Turns, sessions_per_s: float, seed: int) -> Turns:
    """Return the turns with sessions that begin at random moments at a rate, in an order that is drawn.

    Times in ``turns`` count from their session's start.
    """
    num_sessions = int(turns.session.max()) + 1
    draws = stream(seed, "agents/sessions")
    begins = np.cumsum(draws.exponential(1.0 / sessions_per_s, num_sessions))[draws.permutation(num_sessions)]
    at = turns.at_s + begins[turns.session]
    order = np.argsort(at, kind="stable")
    return Turns(
        at_s=at[order],
        session=turns.session[order],
        chain=turns.chain[order],
        input_tokens=turns.input_tokens[order],
        output_tokens=turns.output_tokens[order],
        shared_tokens=turns.shared_tokens[order],
        think_s=turns.think_s[order],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sessions in a few numbers."""

    num_sessions: int
    num_turns: int
    num_chains: int  # agents and sub-agents
    turns_per_session_p50: int
    input_p50_tokens: float
    input_p99_tokens: float
    growth_mean_tokens: float  # of a prompt over the chain's one before, where it grows
    compacted_frac: float  # of later turns: less than half of the prompt before is kept
    think_p50_s: float
    think_p90_s: float
    shared_frac: float  # of all input tokens: what an endless cache holds


def shape_of(turns: Turns) -> Shape:
    """Return how long sessions are, how their context grows, and how long tools and people take."""
    last: dict[int, int] = {}
    growth: list[int] = []
    compacted = later = 0
    for chain, tokens, shared in zip(
        turns.chain.tolist(), turns.input_tokens.tolist(), turns.shared_tokens.tolist(), strict=True
    ):
        if chain in last:
            later += 1
            compacted += 2 * shared < last[chain]
            if tokens > last[chain]:
                growth.append(tokens - last[chain])
        last[chain] = tokens
    thought = turns.think_s[turns.think_s > 0.0]
    return Shape(
        num_sessions=int(np.unique(turns.session).size),
        num_turns=turns.count,
        num_chains=len(last),
        turns_per_session_p50=int(np.median(np.unique(turns.session, return_counts=True)[1])),
        input_p50_tokens=float(np.percentile(turns.input_tokens, 50)),
        input_p99_tokens=float(np.percentile(turns.input_tokens, 99)),
        growth_mean_tokens=float(np.mean(growth)) if growth else 0.0,
        compacted_frac=compacted / later if later else 0.0,
        think_p50_s=float(np.percentile(thought, 50)) if thought.size else 0.0,
        think_p90_s=float(np.percentile(thought, 90)) if thought.size else 0.0,
        shared_frac=float(turns.shared_tokens.sum() / turns.input_tokens.sum()),
    )
