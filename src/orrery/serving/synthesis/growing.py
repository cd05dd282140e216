"""Sessions whose context grows: each request's prompt is all that was said before, and something new.

A session is a chain. Its first request arrives by an arrival law, every further one a pause after the answer before
it. Prompt i = system prompt + new and answer tokens of 0 … i - 1 + new tokens i. Blocks wholly inside the system
prompt are shared by all sessions, the rest by the requests of one session.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.synthesis.blocks import shared_then_own

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COUNT_LAWS = ("geometric", "constant")
PAUSE_LAWS = ("lognormal", "exponential", "constant")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """The requests of all sessions, session behind session: what is new in each, and the pause before it."""

    turn: Ints  # 0, 1, … within its session
    new_tokens: Ints
    answer_tokens: Ints
    pause_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Prefix shared by all sessions, limit of a context (0 = none), and tokens of a block."""

    system_tokens: int
    context_tokens: int
    block_tokens: int

    def __post_init__(self) -> None:
        for name, least in (("system_tokens", 0), ("context_tokens", 0), ("block_tokens", 1)):
            if not least <= (got := getattr(self, name)) <= 1_000_000_000:
                raise ScenarioError(f"traffic: {name}: got {got}; write a whole number from {least}.")


def turn_numbers(count: int, mean: float, law: str, seed: int) -> Ints:
    """0, 1, … within each session, for ``count`` requests in all: the last session may be cut short.

    Numbers of turns are geometric on 1, 2, … with that mean, or all the mean rounded.
    """
    if law not in COUNT_LAWS:
        raise ScenarioError(f"traffic: turns: there is no law {law!r}; write one of {', '.join(COUNT_LAWS)}.")
    if not 1 <= mean <= 1e6:
        raise ScenarioError(f"traffic: turns: got a mean of {mean:g}; write a number from 1 to a million.")
    if count < 1:
        raise ScenarioError(f"traffic: count: got {count}; write a whole number from 1.")
    if law == "constant" or mean == 1:
        turns = np.full(-(-count // round(mean)), round(mean), dtype=np.int64)
    else:
        ends = np.log1p(-stream(seed, "sessions").random(count)) / math.log1p(-1.0 / mean)
        turns = np.floor(np.minimum(ends, float(count))).astype(np.int64) + 1
    last = int(np.searchsorted(np.cumsum(turns), count))
    retained: Ints = turns[: last + 1]
    start = np.repeat(np.cumsum(retained) - retained, retained)
    return (np.arange(start.size) - start)[:count]


def pauses(count: int, mean_s: float, cv_ratio: float, law: str, seed: int) -> Floats:
    """Pauses with that mean: lognormal with that coefficient of variation, exponential, or all alike."""
    if law not in PAUSE_LAWS:
        raise ScenarioError(f"traffic: pauses: there is no law {law!r}; write one of {', '.join(PAUSE_LAWS)}.")
    if not (0 <= mean_s < math.inf and 0 <= cv_ratio <= 100):
        raise ScenarioError(
            f"traffic: pauses: got a mean of {mean_s:g} s and a spread of {cv_ratio:g} means; write a mean from 0 "
            "and a spread of 0 to 100."
        )
    random = stream(seed, "pauses")
    if law == "exponential":
        return mean_s * random.standard_exponential(count)
    if law == "constant" or cv_ratio == 0:
        return np.full(count, mean_s)
    variance = math.log1p(cv_ratio**2)
    return mean_s * np.exp(math.sqrt(variance) * random.standard_normal(count) - variance / 2.0)


def grown(turns: Turns, sharing: Sharing, rate_per_s: float, seed: int, law: str, knobs: dict[str, Any]) -> Requests:
    """The requests, session behind session in order of their first arrival; ``rate_per_s`` counts requests."""
    is_first = turns.turn == 0
    session = np.cumsum(is_first) - 1
    prompt = prompts(turns, sharing)
    first = arrivals(law, int(is_first.sum()), rate_per_s * is_first.sum() / session.size, seed, **knobs)
    index = np.arange(session.size)
    start, ids = _blocks(session, prompt + turns.answer_tokens, sharing)
    return Requests(
        arrive_s=np.where(is_first, first[session], turns.pause_s),
        input_tokens=prompt,
        output_tokens=turns.answer_tokens,
        after=np.where(is_first, -1, index - 1),
        session=session,
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=sharing.block_tokens,
    )


def prompts(turns: Turns, sharing: Sharing) -> Ints:
    """The prompt of each request: all that was said before it in its session, and what is new."""
    totals = np.cumsum(turns.new_tokens + turns.answer_tokens)
    before = totals - turns.new_tokens - turns.answer_tokens
    start = np.maximum.accumulate(np.where(turns.turn == 0, np.arange(totals.size), 0))
    return sharing.system_tokens + before - before[start] + turns.new_tokens


def within(turns: Turns, sharing: Sharing) -> NDArray[np.bool_]:
    """Which requests the context still holds; contexts only grow, so a session ends where it first does not."""
    if not sharing.context_tokens:
        return np.ones(turns.turn.size, dtype=np.bool_)
    return prompts(turns, sharing) + turns.answer_tokens <= sharing.context_tokens


def _blocks(session: Ints, tokens: Ints, sharing: Sharing) -> tuple[Ints, Ints]:
    blocks = tokens // sharing.block_tokens
    system = np.minimum(blocks, sharing.system_tokens // sharing.block_tokens)
    own = blocks - system
    last = np.append(np.flatnonzero(np.diff(session)), session.size - 1)  # the longest context of each session
    in_session = own[last]
    first = sharing.system_tokens // sharing.block_tokens + np.cumsum(in_session) - in_session
    return shared_then_own(np.zeros_like(system), system, first[session], own, sharing.block_tokens)


def filled(count: int, make: Callable[[int], Turns], sharing: Sharing) -> Turns:
    """``count`` requests that the context holds: ``make(n)`` draws n, and more are drawn for those that it drops."""
    requested = count
    while True:
        drawn = make(requested)
        fits = np.flatnonzero(within(drawn, sharing))[:count]
        if fits.size == count:
            return Turns(
                turn=drawn.turn[fits],
                new_tokens=drawn.new_tokens[fits],
                answer_tokens=drawn.answer_tokens[fits],
                pause_s=drawn.pause_s[fits],
            )
        if fits.size * 50 < requested:
            raise ScenarioError(
                f"traffic: context_tokens: got {sharing.context_tokens}: it holds {fits.size} of {requested} prompts; "
                "write a longer context, or shorter or fewer turns."
            )
        requested = math.ceil(requested * max(1.2, 1.1 * count / fits.size))
