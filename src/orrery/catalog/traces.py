"""Request traces: when requests arrive and how long they are; synthesised from published statistics, or read.

A shipped trace is a file of percentiles in ``facts/traces``, and the generator below makes the requests: no user's
data travels with the project. Lengths are lognormal, fitted to the published median, 90th and 99th percentile and
mean; gaps are gamma, so that their coefficient of variation is the published one (1 = Poisson) [wang-2023-burstgpt].
"""

import math
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, read_facts
from orrery.catalog.trace_file import read_trace

FOLDER = Path(__file__).parent / "facts" / "traces"

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Requests in order of arrival: seconds from the first, prompt and answer lengths."""

    name: str
    arrival_s: Floats
    input_tokens: Counts
    output_tokens: Counts
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStats:
    """A trace in a few numbers; percentiles by linear interpolation."""

    num_requests: int
    duration_s: float
    request_rate_per_s: float
    interarrival_cv_ratio: float
    input_mean_tokens: float
    input_std_tokens: float
    input_p50_tokens: float
    input_p90_tokens: float
    input_p99_tokens: float
    output_mean_tokens: float
    output_std_tokens: float
    output_p50_tokens: float
    output_p90_tokens: float
    output_p99_tokens: float
    longest_tokens: int  # prompt and answer of the longest request


def trace_names() -> tuple[str, ...]:
    """The traces that ship with the project."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_trace(name_or_path: str, seed: int = 0) -> Trace:
    """A shipped trace by name (made from ``seed``), or one in a file: see ``catalog.trace_file`` for the formats."""
    if name_or_path in trace_names():
        return _synthesised(name_or_path, seed)
    path = Path(name_or_path)
    if path.suffix or path.exists():
        arrival_s, input_tokens, output_tokens, notes = read_trace(path)
        return Trace(
            name=path.name, arrival_s=arrival_s, input_tokens=input_tokens, output_tokens=output_tokens, notes=notes
        )
    raise UnknownName("trace", name_or_path, trace_names())


def stats(trace: Trace) -> TraceStats:
    """Rate, lengths and burstiness of a trace. A trace without arrivals (all at 0) has rate 0."""
    gaps = np.diff(trace.arrival_s)
    duration = float(trace.arrival_s[-1] - trace.arrival_s[0])
    spread = float(gaps.std() / gaps.mean()) if duration > 0 else 0.0
    marks = (50.0, 90.0, 99.0)
    input_p = np.percentile(trace.input_tokens, marks)
    output_p = np.percentile(trace.output_tokens, marks)
    return TraceStats(
        num_requests=len(trace.arrival_s), duration_s=duration,
        request_rate_per_s=(len(trace.arrival_s) - 1) / duration if duration > 0 else 0.0,
        interarrival_cv_ratio=spread,
        input_mean_tokens=float(trace.input_tokens.mean()), input_std_tokens=float(trace.input_tokens.std()),
        input_p50_tokens=float(input_p[0]), input_p90_tokens=float(input_p[1]), input_p99_tokens=float(input_p[2]),
        output_mean_tokens=float(trace.output_tokens.mean()), output_std_tokens=float(trace.output_tokens.std()),
        output_p50_tokens=float(output_p[0]), output_p90_tokens=float(output_p[1]),
        output_p99_tokens=float(output_p[2]),
        longest_tokens=int((trace.input_tokens + trace.output_tokens).max()),
    )  # fmt: skip


def stream(seed: int, name: str) -> np.random.Generator:
    """A stream of random numbers of its own: drawing more of one thing never changes another."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode())])))


def arrivals(count: int, mean_gap_s: float, cv_ratio: float, random: np.random.Generator) -> Floats:
    """Arrival times from 0 whose gaps are gamma with that mean and coefficient of variation; 0 = like clockwork.

    The gaps are scaled so that their mean is exactly ``mean_gap_s``: the rate asked for is the rate got.
    """
    if count == 1:
        return np.zeros(1)
    shape = 1.0 / cv_ratio**2 if cv_ratio > 0 else math.inf
    gaps = random.gamma(shape, 1.0, count - 1) if math.isfinite(shape) else np.ones(count - 1)
    return np.concatenate(([0.0], np.cumsum(gaps * (mean_gap_s * (count - 1) / gaps.sum()))))


def fit_lognormal(quantiles: dict[float, float], mean: float) -> tuple[float, float]:
    """(mu, sigma) whose mean is ``mean`` and whose quantiles lie nearest, by least squares of their logarithms.

    The mean decides the load on a server, so it is kept: mu = log(mean) - sigma^2 / 2, and sigma is searched.
    """
    sigma = np.linspace(0.01, 3.0, 1500)
    mu = math.log(mean) - sigma**2 / 2
    z = np.array([NormalDist().inv_cdf(p) for p in quantiles])
    wanted = np.log(np.array(list(quantiles.values())))
    error = ((mu[:, None] + sigma[:, None] * z - wanted) ** 2).sum(axis=1)
    best = int(error.argmin())
    return float(mu[best]), float(sigma[best])


def lengths(count: int, mu: float, sigma: float, most: float, random: np.random.Generator) -> Counts:
    """Whole lognormal lengths between 1 and ``most``."""
    drawn = np.exp(mu + sigma * random.standard_normal(count))
    return np.clip(np.rint(drawn), 1, most).astype(np.int64)


@cache
def _synthesised(name: str, seed: int) -> Trace:
    facts, _ = read_facts(FOLDER / f"{name}.toml")
    number = {key: float(fact.value) for key, fact in facts.items()}
    count = int(number["num_requests"])
    gaps = stream(seed, f"{name}/arrivals")
    return Trace(
        name=name,
        arrival_s=arrivals(count, number["interarrival_s"], number["interarrival_cv_ratio"], gaps),
        input_tokens=_lengths(name, "input", number, count, seed),
        output_tokens=_lengths(name, "output", number, count, seed),
        facts=tuple(facts.values()),
        notes=(f"trace {name!r} is synthesised from published statistics (seed {seed}); `orrery show trace {name}`",),
    )


def _lengths(name: str, side: str, number: dict[str, float], count: int, seed: int) -> Counts:
    marks = {p / 100: number[f"{side}_p{p}_tokens"] for p in (50, 90, 99)}
    mu, sigma = fit_lognormal(marks, number[f"{side}_mean_tokens"])
    return lengths(count, mu, sigma, number[f"{side}_most_tokens"], stream(seed, f"{name}/{side}"))
