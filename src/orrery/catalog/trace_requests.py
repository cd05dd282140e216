"""A trace as the requests of a run: replayed as it is, at another rate, cut short or repeated; or fitted."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.trace_table import NO_ARRIVALS, Trace
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import NONE, Requests
from orrery.serving.synthesis import Fitted, fit
from orrery.serving.synthesis.blocks import MAX_IDS, ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 100_000_000
"""More requests than a run could ever hold; such a count is a slip."""


@typed
def requests_of(trace: Trace, count: int = 0, rate: float = 0.0, seed: int = 0, most_tokens: int = 0) -> Requests:
    """The trace's requests at the trace's times, or others.

    ``count``: the first so many; more than the trace has repeat it end to end, a mean gap between, each time with new
    conversations and the same blocks. ``rate``: times are scaled so that what is replayed has this mean rate, in
    requests/s. ``most_tokens``: longer requests are cut to it, the prompt first. ``seed`` matters only where the trace
    has no arrival times and a rate is asked for: Poisson arrivals are drawn.
    """
    if not 0 <= count <= MOST:
        raise ScenarioError(f"trace {trace.name}: count: got {count}; write a whole number up to {MOST:,}, 0 = all.")
    if not 0 <= rate < float("inf"):
        raise ScenarioError(f"trace {trace.name}: rate: got {rate:g} requests/s; write a number above 0, 0 = its own.")
    size = trace.arrival_s.size
    place = np.arange(count or size)
    lap, index = place // size, place % size
    inputs, outputs, notes = _cut(trace, most_tokens)
    start, ids = _blocks(trace, index, inputs[index])
    at, text = _times(trace, lap, index, rate, seed)
    return Requests(
        arrive_s=at,
        input_tokens=inputs[index],
        output_tokens=outputs[index],
        session=_sessions(trace.session, lap, index),
        client=trace.client[index] if trace.client.size else NONE.copy(),
        priority=trace.priority[index] if trace.priority.size else np.zeros(0),
        origin=trace.origin[index] if trace.origin.size else NONE.copy(),
        origin_names=trace.origins,
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=trace.prefix_block_tokens if start.size else 0,
        notes=(*(n for n in trace.notes if not (text and NO_ARRIVALS in n)), *notes, *text),
    )


@typed
def fit_trace(trace: Trace) -> Fitted:
    """The trace in a few numbers, from which traffic like it is made at any rate and for as long as wanted."""
    return fit(trace.arrival_s, trace.input_tokens, trace.output_tokens)


def _times(trace: Trace, lap: Ints, index: Ints, rate: float, seed: int) -> tuple[Floats, tuple[str, ...]]:
    size, lasts_s = trace.arrival_s.size, float(trace.arrival_s[-1])
    if not lasts_s > 0:
        if not rate:
            return np.zeros(index.size), ()
        text = f"trace {trace.name}: no arrival times; Poisson arrivals at {rate:g} requests/s (seed {seed})"
        return arrivals("poisson", index.size, rate, seed), (text,)
    at = trace.arrival_s[index] + lap * (lasts_s * size / (size - 1))
    if not rate or not at[-1] > 0:
        return at, ()
    return at * ((at.size - 1) / rate / at[-1]), ()


def _cut(trace: Trace, most_tokens: int) -> tuple[Ints, Ints, tuple[str, ...]]:
    inputs, outputs = trace.input_tokens, trace.output_tokens
    if not most_tokens:
        return inputs, outputs, ()
    if most_tokens < 2:
        raise ScenarioError(f"trace {trace.name}: most_tokens: got {most_tokens}; write 2 or more, 0 = no limit.")
    cut = int((inputs + outputs > most_tokens).sum())
    answers = np.minimum(outputs, most_tokens - 1)
    text = f"trace {trace.name}: {cut} requests are cut to {most_tokens:,} tokens, the prompt first"
    return np.minimum(inputs, most_tokens - answers), answers, (text,) if cut else ()


def _sessions(session: Ints, lap: Ints, index: Ints) -> Ints:
    if not session.size:
        return NONE.copy()
    return np.where(session[index] < 0, -1, session[index] + lap * (int(session.max()) + 1))


def _blocks(trace: Trace, index: Ints, input_tokens: Ints) -> tuple[Ints, Ints]:
    if not trace.prefix_start.size:
        return NONE.copy(), NONE.copy()
    first = trace.prefix_start[:-1][index]
    blocks = np.minimum(np.diff(trace.prefix_start)[index], input_tokens // trace.prefix_block_tokens)
    if blocks.sum() > MAX_IDS:
        raise ScenarioError(
            f"trace {trace.name}: count: got {index.size}: {blocks.sum():,} shared blocks; write a smaller count."
        )
    ids = trace.prefix_ids[ranges(first, blocks)]
    if ids.size < trace.prefix_ids.size:
        ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)  # numbered 0, 1, … again
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(blocks))), ids
