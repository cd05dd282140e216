"""Request traces: when requests arrive and how long they are; synthesised from published statistics, or read.

A shipped trace is a file of percentiles in ``facts/traces``, and the generator below makes the requests: no user's
data travels with the project. Lengths are lognormal, fitted to the published median, 90th and 99th percentile and
mean; gaps are gamma, so that their coefficient of variation is the published one (1 = Poisson) [wang-2023-burstgpt].
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import read_facts
from orrery.base.user_file import is_user_file
from orrery.catalog.trace_file import read_trace
from orrery.catalog.trace_table import Counts, Floats, Trace
from orrery.engine.streams import stream
from orrery.serving.arrivals.techniques import gamma
from orrery.serving.synthesis.lengths import fit_lognormal, lognormal_lengths

FOLDER = Path(__file__).parent / "facts" / "traces"


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


@typed
def load_trace(name_or_path: str | Path, seed: int = 0) -> Trace:
    """A shipped trace by name (made from ``seed``), or one in a file: see ``catalog.trace_file`` for the formats."""
    if seed < 0:
        raise ScenarioError(f"load_trace: seed: got {seed}; write a whole number from 0.")
    name, path = str(name_or_path), Path(name_or_path)
    if name in trace_names():
        return _synthesised(name, int(seed))
    if is_user_file(path):
        return _read(path, path.stat().st_mtime_ns)
    if path.suffix:
        return read_trace(path)
    raise UnknownName("trace", name, trace_names())


def stats(trace: Trace) -> TraceStats:
    """Rate, lengths and burstiness of a trace. A trace without arrivals (all at 0) has rate 0."""
    gaps = np.diff(trace.arrival_s)
    duration = float(trace.arrival_s[-1] - trace.arrival_s[0])
    spread = float(gaps.std() / gaps.mean()) if duration > 0 else 0.0
    marks = (50.0, 90.0, 99.0)
    input_p = np.percentile(trace.input_tokens, marks)
    output_p = np.percentile(trace.output_tokens, marks)
    return TraceStats(
        num_requests=len(trace.arrival_s),
        duration_s=duration,
        request_rate_per_s=(len(trace.arrival_s) - 1) / duration if duration > 0 else 0.0,
        interarrival_cv_ratio=spread,
        input_mean_tokens=float(trace.input_tokens.mean()),
        input_std_tokens=float(trace.input_tokens.std()),
        input_p50_tokens=float(input_p[0]),
        input_p90_tokens=float(input_p[1]),
        input_p99_tokens=float(input_p[2]),
        output_mean_tokens=float(trace.output_tokens.mean()),
        output_std_tokens=float(trace.output_tokens.std()),
        output_p50_tokens=float(output_p[0]),
        output_p90_tokens=float(output_p[1]),
        output_p99_tokens=float(output_p[2]),
        longest_tokens=int((trace.input_tokens + trace.output_tokens).max()),
    )


@lru_cache(maxsize=4)
def _read(path: Path, written_ns: int) -> Trace:
    """A file's trace: one answer asks for it several times, and a long one takes a second to read."""
    return read_trace(path)


@lru_cache(maxsize=32)
def _synthesised(name: str, seed: int) -> Trace:
    facts, _ = read_facts(FOLDER / f"{name}.toml")
    number = {key: float(fact.value) for key, fact in facts.items()}
    count = int(number["num_requests"])
    return Trace(
        name=name,
        arrival_s=_arrivals(name, number, count, seed),
        input_tokens=_lengths(name, "input", number, count, seed),
        output_tokens=_lengths(name, "output", number, count, seed),
        facts=tuple(facts.values()),
        notes=(f"trace {name!r} is synthesised from published statistics (seed {seed}); `orrery show trace {name}`",),
    )


def _arrivals(name: str, number: dict[str, float], count: int, seed: int) -> Floats:
    """From 0; the gaps after it are gamma, their mean exactly the published one."""
    if count < 2:
        return np.zeros(count)
    cv = number["interarrival_cv_ratio"]
    knobs = gamma.Gamma(burstiness=1.0 / cv**2 if cv > 0 else math.inf)
    after = gamma.rule(count - 1, 1.0 / number["interarrival_s"], stream(seed, f"{name}/arrivals"), knobs)
    return np.concatenate(([0.0], after))


def _lengths(name: str, side: str, number: dict[str, float], count: int, seed: int) -> Counts:
    marks = {p / 100: number[f"{side}_p{p}_tokens"] for p in (50, 90, 99)}
    mu, sigma = fit_lognormal(marks, number[f"{side}_mean_tokens"])
    return lognormal_lengths(count, mu, sigma, number[f"{side}_most_tokens"], stream(seed, f"{name}/{side}"))
