"""Interference seen from a host: what its counters show, second by second, of one VM and its neighbours.

A run has a VM and up to four neighbours on one socket. Every tenant is of a kind of program, drawn around the kind's
figures; it works in phases and bursts, and in half of the runs neighbours come and go. ``contention`` says how fast
each goes in every second. What is to be predicted is the VM's speed over the whole run among the others over its speed
alone, which no counter shows: the program is unknown.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.tenants.contention import LINE_BYTES, Host, Shared, Tenants, alone, share

Array = NDArray[np.float64]

MAX_TENANTS = 5
VIRTUAL_CORES = (4, 8, 16, 24)
SPREAD = 0.3
"""Standard deviation of the logarithm of a tenant's figures around those of its kind."""

COUNTER_NOISE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of program, and how its work comes; all figures are assumed."""

    cycles_ratio: float
    accesses_frac: float
    working_set_bytes: float
    streaming_frac: float
    overlap_ratio: float
    written_frac: float
    busy_frac: float  # of its virtual cores, on average
    phase_frac: float = 0.2  # how far phases move its accesses
    burst_ratio: float = 1.0  # busier by so much in a burst


FIELDS = (
    "cycles_ratio",
    "accesses_frac",
    "working_set_bytes",
    "streaming_frac",
    "overlap_ratio",
    "written_frac",
    "busy_frac",
    "phase_frac",
    "burst_ratio",
)


def _kind(*values: float) -> Kind:
    return Kind(**dict(zip(FIELDS, values, strict=False)))


KINDS: dict[str, Kind] = {
    "web": _kind(0.9, 0.010, 20e6, 0.10, 1.5, 0.2, 0.4, 0.2, 2.0),
    "database": _kind(0.8, 0.015, 45e6, 0.15, 1.8, 0.3, 0.6, 0.3, 1.5),
    "key-value": _kind(0.7, 0.020, 80e6, 0.20, 1.4, 0.2, 0.5, 0.1, 1.6),
    "compile": _kind(0.8, 0.006, 10e6, 0.10, 2.0, 0.3, 0.9, 0.4),
    "video": _kind(0.4, 0.004, 15e6, 0.40, 6.0, 0.4, 0.9, 0.3),
    "analytics": _kind(0.6, 0.025, 60e6, 0.60, 6.0, 0.2, 0.8, 0.4, 1.2),
    "sort": _kind(0.6, 0.030, 40e6, 0.50, 5.0, 0.5, 0.9, 0.5),
    "matrix": _kind(0.35, 0.003, 25e6, 0.10, 8.0, 0.1, 1.0),
    "stream": _kind(0.5, 0.040, 10e6, 0.90, 12.0, 0.4, 0.9, 0.1),
    "batch": _kind(0.7, 0.002, 5e6, 0.05, 2.5, 0.2, 0.7, 0.3, 1.3),
    "graph": _kind(0.8, 0.030, 70e6, 0.40, 3.0, 0.1, 0.9, 0.5),
    "search": _kind(0.7, 0.012, 35e6, 0.20, 2.2, 0.1, 0.6, 0.2, 1.8),
    "inference": _kind(0.45, 0.012, 30e6, 0.55, 7.0, 0.1, 0.8, 0.2, 1.3),
    "compress": _kind(0.6, 0.008, 18e6, 0.30, 3.0, 0.4, 0.9, 0.3),
}
UNSEEN = ("graph", "search", "inference", "compress")
"""Kinds that no run to learn from has, neither as the VM nor beside it."""

TENANT_METRICS = (
    "threads",
    "instructions",
    "instructions a cycle",
    "accesses",
    "misses an access",
    "cache held",
    "read",
    "written",
    "waiting",
    "switches",
    "packets",
)
HOST_METRICS = (
    "threads",
    "instructions",
    "traffic",
    "utilisation",
    "pairing",
    "power",
    "temperature",
    "interrupts",
    "disk",
    "packets",
    "processes",
    "fan",
)
NUM_CHANNELS = 8
NUM_METRICS = MAX_TENANTS * len(TENANT_METRICS) + len(HOST_METRICS) + 2 * NUM_CHANNELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs side by side: metrics (runs, seconds, metrics) as logarithms, and what is to be found."""

    metrics: NDArray[np.float32]
    speed_frac: Array
    is_present: NDArray[np.bool_]  # (runs, seconds, tenants)


def runs(host: Host, kinds: tuple[str, ...], *, num_runs: int, num_seconds: int, seed: int) -> Runs:
    """Simulate ``num_runs`` runs of VMs of these kinds beside up to four neighbors of these kinds."""
    rng = np.random.default_rng([seed, 30])
    num_neighbours = rng.integers(0, MAX_TENANTS, size=num_runs)
    is_there = np.arange(MAX_TENANTS)[None, None, :] <= num_neighbours[:, None, None]
    chosen = _figures(kinds)[rng.integers(len(kinds), size=(num_runs, 1, MAX_TENANTS))]
    return _run(rng, host, chosen, is_there & _presence(rng, num_runs, num_seconds))


def mixes(host: Host, kinds: tuple[str, ...], *, num_runs: int, num_seconds: int, seed: int) -> Runs:
    """Simulate ``num_runs`` draws of one mix, all there all the time: the VM's kind first, then its neighbors'."""
    rng = np.random.default_rng([seed, 32])
    empty = (kinds[0],) * (MAX_TENANTS - len(kinds))
    chosen = np.broadcast_to(_figures((*kinds, *empty)), (num_runs, 1, MAX_TENANTS, len(FIELDS)))
    is_there = np.arange(MAX_TENANTS) < len(kinds)
    return _run(rng, host, chosen, np.broadcast_to(is_there, (num_runs, num_seconds, MAX_TENANTS)))


def _figures(kinds: tuple[str, ...]) -> Array:
    """A row for every kind, in the order of its fields."""
    return np.array([[getattr(KINDS[name], field) for field in FIELDS] for name in kinds])


def _run(rng: np.random.Generator, host: Host, chosen: Array, present: NDArray[np.bool_]) -> Runs:
    """Tenants of the chosen figures, where they are present; the first is the VM."""
    tenants = _tenants(rng, chosen, present)
    found, lonely = share(host, tenants), alone(host, tenants.of(..., slice(0, 1)))
    work = tenants.num_active_threads[..., 0]
    speed = (work / found.instruction_s[..., 0]).sum(axis=1) / (work / lonely.instruction_s[..., 0]).sum(axis=1)
    return Runs(metrics=counters(rng, host, tenants, found), speed_frac=speed, is_present=present)


def _presence(rng: np.random.Generator, num_runs: int, num_seconds: int) -> NDArray[np.bool_]:
    """When each tenant is there: the VM always, neighbours always in static runs, else from one second to another."""
    shape = (num_runs, 1, MAX_TENANTS)
    is_static = rng.random((num_runs, 1, 1)) < 0.5
    begin = rng.integers(0, num_seconds // 2, size=shape)
    end = begin + rng.integers(num_seconds // 4, num_seconds, size=shape)
    second: Array = np.arange(float(num_seconds))[None, :, None]
    is_vm = np.arange(MAX_TENANTS)[None, None, :] == 0
    return is_vm | is_static | ((begin <= second) & (second < end))


def _tenants(rng: np.random.Generator, chosen: Array, present: NDArray[np.bool_]) -> Tenants:
    """Every tenant in every second; ``chosen`` are its kind's figures."""
    figures: list[Array] = [chosen[..., i] for i in range(len(FIELDS))]
    cycles, accesses, working_set, streaming, overlap, written, busy, phase, burst = figures
    one = busy.shape

    def around(value: Array) -> Array:
        return value * np.exp(SPREAD * rng.standard_normal(one))

    def through_time(value: Array) -> Array:
        return np.broadcast_to(value, present.shape).copy()

    second: Array = np.arange(float(present.shape[1]))[None, :, None]
    wave: Array = np.sign(np.sin(2.0 * np.pi * (second / rng.uniform(6.0, 30.0, one) + rng.random(one))))
    in_burst = np.sin(2.0 * np.pi * (second / rng.uniform(4.0, 12.0, one) + rng.random(one))) > 0.6
    cores = rng.choice(VIRTUAL_CORES, size=one)
    active = np.minimum(1.0, np.clip(around(busy), 0.1, 1.0) * np.where(in_burst, burst, 1.0)) * cores
    return Tenants(
        num_active_threads=active * present,
        num_cycles_per_instruction=through_time(around(cycles)),
        num_accesses_per_instruction=around(accesses) * (1.0 + phase * wave),
        working_set_bytes=through_time(around(working_set) * cores / 8.0),
        streaming_frac=through_time(np.clip(around(streaming), 0.01, 0.95)),
        num_parallel_misses=through_time(np.maximum(around(overlap), 1.0)),
        written_frac=through_time(np.clip(around(written), 0.0, 1.0)),
    )


def counters(rng: np.random.Generator, host: Host, tenants: Tenants, found: Shared) -> NDArray[np.float32]:
    """The host's counters, with noise: logarithms of 1 + count, slot by slot, then host, then channels."""
    threads = tenants.num_active_threads
    rate = threads / found.instruction_s
    is_there = threads > 0.0
    accesses = rate * tenants.num_accesses_per_instruction
    read = accesses * found.miss_frac * LINE_BYTES
    written = read * tenants.written_frac
    noise = np.exp(rng.standard_normal((2, *threads.shape)))
    slots = np.stack(
        [
            threads,
            rate,
            100.0 * is_there / (found.instruction_s * host.clock_hz),
            accesses,
            100.0 * found.miss_frac * is_there,
            found.occupancy_bytes,
            read,
            written,
            100.0 * found.waiting_frac * is_there,
            1e3 * threads * noise[0],
            1e3 * noise[1],
        ],
        axis=-1,
    )
    shape = (*threads.shape[:2], -1)
    total = threads.sum(axis=-1)
    power = 100.0 + 2.5 * np.minimum(total, host.num_cores)
    dull = np.exp(rng.standard_normal((*threads.shape[:2], 5)))
    whole = np.concatenate(
        [
            np.stack(
                [
                    total,
                    rate.sum(axis=-1),
                    found.traffic_bytes_per_s.sum(axis=-1),
                    100.0 * found.utilisation_frac[..., 0],
                    100.0 * found.thread_ratio[..., 0],
                    power,
                    30.0 + _lagged(power) / 10.0,
                ],
                axis=-1,
            ),
            1e3 * dull,
        ],
        axis=-1,
    )
    channels = np.stack([read.sum(axis=-1), written.sum(axis=-1)], axis=-1)[..., None, :] / NUM_CHANNELS
    uneven = channels * np.exp(0.1 * rng.standard_normal((*threads.shape[:2], NUM_CHANNELS, 2)))
    shown = np.concatenate([slots.reshape(shape), whole, uneven.reshape(shape)], axis=-1)
    return np.log1p(shown * np.exp(COUNTER_NOISE * rng.standard_normal(shown.shape))).astype(np.float32)


def _lagged(power: Array) -> Array:
    """Temperature's share of power: half of it follows the seconds before."""
    so_far: Array = np.arange(1.0, power.shape[1] + 1.0)
    return 0.5 * power + 0.5 * power.cumsum(axis=1) / so_far
