"""Notes on how near a deployment is to what it can sustain: there, a little more traffic is a lot more waiting."""

from math import ceil

from orrery.base.units import percent
from orrery.execution.memory import Memory
from orrery.serving.steady import Steady

NEAR_FRAC = 0.9
"""From this part of the highest rate on, an error of some percent in a step is a multiple in the waiting."""


def notes_near(rate_per_s: float, highest_per_s: float) -> tuple[str, ...]:
    """Notes on arrivals at a rate."""
    if highest_per_s <= 0 or rate_per_s < NEAR_FRAC * highest_per_s:
        return ()
    share = rate_per_s / highest_per_s
    if share < 1:
        return (
            f"at {percent(share)} of the highest sustainable rate ({highest_per_s:.3g} requests/s): "
            f"{percent(1 / share - 1, 1)} more and the queue grows for ever; latency is very uncertain here",
        )
    return (
        f"{percent(share - 1, 1)} beyond the highest sustainable rate ({highest_per_s:.3g} requests/s): the queue "
        "grows as long as the run lasts, and latency with it",
    )


def waiting_notes(memory: Memory, state: Steady, replicas: int) -> tuple[str, ...]:
    """Notes on a closed loop that keeps more in flight than batches hold."""
    waiting = float(state.concurrency[-1] - state.slots[-1]) * replicas
    if waiting < 1:
        return ()
    held = float(state.slots[-1])
    by_cache = held < memory.max_num_seqs
    what = "the cache holds" if by_cache else f"max_num_seqs = {memory.max_num_seqs} admits"
    return (
        f"about {ceil(waiting):,} of {float(state.concurrency[-1]) * replicas:,.0f} requests in flight wait for a "
        f"slot: {what} about {held:,.0f} at a time{' on each replica' if replicas > 1 else ''}",
    )
