"""One result of a microbenchmark, and the median and spread of repeats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from orrery.calibrate.measure.clock import deviation

REPEATS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A result in SI units or in cycles. ``spread_frac``: robust deviation of the repeats over their median."""

    name: str
    value: float
    unit: str  # "s", "bytes_per_s", "flops_per_s", "cycles", …
    spread_frac: float = 0.0
    condition: str = ""
    fact: str = ""  # the catalogue's fact that it is compared with: "inside.l2_cycles", "dense_flops_per_s.bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A microbenchmark that could not be run, and why."""

    name: str
    error: str


def of_samples(
    name: str, samples: Sequence[float], unit: str, condition: str = "", *, fact: str = "", per: float = 1.0
) -> Reading:
    """The median of ``samples``, each of ``per`` equal parts."""
    middle = median(samples)
    spread_frac = deviation(list(samples)) / middle if middle > 0 else 0.0
    return Reading(name=name, value=middle / per, unit=unit, spread_frac=spread_frac, condition=condition, fact=fact)


def rate_of(
    name: str, samples: Sequence[float], amount: float, unit: str, condition: str = "", *, fact: str = ""
) -> Reading:
    """``amount`` over each of ``samples`` seconds (or cycles)."""
    return of_samples(name, [amount / sample for sample in samples], unit, condition, fact=fact)


def repeated(sample: Callable[[], float], repeats: int = REPEATS) -> list[float]:
    """``repeats`` samples, after one that warms up."""
    sample()
    return [sample() for _ in range(repeats)]


def timed(call: Callable[[], object], times: int = 1) -> list[float]:
    """Seconds of ``times`` calls that are done when they return."""

    def sample() -> float:
        before = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - before

    return repeated(sample)
