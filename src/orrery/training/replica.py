"""Interface of a local-update technique: its inputs from a data-parallel job, and its answer.

Replicas compute steps of their own batches. When and how they exchange what they have learnt is the technique at
``training.local_updates``; its rule takes a ``Replica`` and its knobs, and gives one ``Round``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Exchange = Callable[[float], float]
"""Seconds that a message of so many bytes takes."""

STAYS_APART = "stays-apart"
"""Trait of local updates whose replicas never meet."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replica:
    """One replica of the model and the collectives between replicas; times are of this replica alone.

    Replicas stand in islands with fast links inside; where there is but one island, ``inside`` sees all of them.
    """

    step_s: float  # forward, backward and update, without a word to any other replica
    backward_s: float  # the part of it beside which gradients can be reduced as they are made
    num_parameters: float  # that this device exchanges
    gradient_bytes: float  # of each, as gradients travel
    weight_bytes: float  # of each, as parameters or their differences travel
    all_reduce_s: Exchange  # among all replicas
    inside_s: Exchange  # an all-reduce among those of an island
    neighbour_s: Exchange  # one message to the next replica and one back, at once
    contention_ratio: float = 1.0  # how much slower kernels run beside a collective
    last_frac: float = 0.0  # share of the gradients that only the end of the backward pass makes

    def beside_s(self, exchange_s: float, work_s: float) -> float:
        """Time that an exchange adds to work beside it: its exposed part, and the work's slowdown."""
        return max(exchange_s - work_s, 0.0) + (self.contention_ratio - 1.0) * min(exchange_s, work_s)

    def overlapped_s(self, reduce_s: float) -> float:
        """Time added by a reduction that starts with the first bucket of the backward pass and ends with the last
        one.
        """
        return max(self.beside_s(reduce_s, self.backward_s), self.last_frac * reduce_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """From one exchange of all replicas to the next."""

    num_steps: int  # of every replica
    time_s: float
    exposed_s: float  # of it, not spent on a replica's own steps
    sent_bytes: float  # payload of one replica's collectives, all steps of the round together
    num_rounds_stale: int  # how old the exchanged state is when it is used
    extra_bytes: float  # state on the device that plain data parallelism does not hold


def rounds_of(replica: Replica, num_steps: int, exposed_s: float, **rest: Any) -> Round:
    """A round of so many local steps and what is exposed on top of them."""
    return Round(num_steps=num_steps, time_s=num_steps * replica.step_s + exposed_s, exposed_s=exposed_s, **rest)


def scaling_efficiency(replica: Replica, one: Round) -> float:
    """Throughput of a replica among others, as a share of what it does alone."""
    return one.num_steps * replica.step_s / one.time_s
