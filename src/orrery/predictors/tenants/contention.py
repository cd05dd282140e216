"""Tenants of one host: how they share its last-level cache, its memory bandwidth and its threads, and slow each other.

    threads   more active threads than cores share cores, two by two; more than the host runs take turns
    cache     each holds c_i(T) bytes, what it touches in the window T in which all together fill the cache, with
              dc/dn = 64 bytes x miss(c), miss(c) = s + (1 - s) exp(-c / w): footprints of the higher-order theory of
              locality [xiang-2013], for reuse distances that fall exponentially with mean w and a share s never reused
    memory    a miss waits r u / 2 (1 - u) longer for busy banks, as at a queue of random arrivals, each served in r;
              the utilisation u is the one at which what the tenants ask for, so slowed, is what passes
    speed     seconds of an instruction = cycles / clock x threads' factor + accesses (hit + miss x memory) / overlap

How much a tenant loses is its own time alone on the host over its time among the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Array = NDArray[np.float64]
Number = float | Array

LINE_BYTES = 64.0
_HALVINGS = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Resources that tenants share: a socket, as ``processors`` describes one, or any other; or several
    (``stacked``).
    """

    num_cores: Number
    clock_hz: Number
    last_level_cache_bytes: Number
    memory_bandwidth_bytes_per_s: Number  # sustained
    cache_hit_s: Number
    memory_s: Number  # of one miss while the memory is idle
    num_threads_per_core: Number = 2.0
    paired_speed_frac: Number = 0.62  # of a thread whose core runs another; two then do 1.24 times the work; assumed
    bank_busy_s: Number = 46e-9  # between two rows of a DDR5 bank, as recalled of the standard

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not np.all(np.greater(getattr(self, name), 0.0)):
                raise ScenarioError(f"{name} = {getattr(self, name)} in a host; write more than 0.")

    def thread_factor(self, num_active: Array) -> Array:
        """Times longer that a thread computes where so many are active: cores are filled singly first."""
        active = np.maximum(num_active, 1e-9)
        paired_frac = np.clip(2.0 * (1.0 - self.num_cores / active), 0.0, np.minimum(self.num_threads_per_core - 1, 1))
        turns = np.maximum(1.0, active / (self.num_cores * self.num_threads_per_core))
        return turns * (1.0 - paired_frac + paired_frac / self.paired_speed_frac)

    def loaded_memory_s(self, utilisation_frac: Array) -> Array:
        """Time of one miss at that utilisation of the memory."""
        return self.memory_s + self.bank_busy_s * utilisation_frac / (2.0 * (1.0 - utilisation_frac))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenants:
    """Tenants side by side: arrays whose last axis are the tenants of one host; all have one shape."""

    num_active_threads: Array
    num_cycles_per_instruction: Array  # while nothing waits for the last-level cache
    num_accesses_per_instruction: Array  # that reach the last-level cache
    working_set_bytes: Array  # mean reuse distance of them
    streaming_frac: Array  # of them that no cache helps
    num_parallel_misses: Array  # in flight at a time
    written_frac: Array  # of lines that are written back

    def of(self, *index: Any) -> "Tenants":
        """The same fields at an index of their arrays."""
        return Tenants(**{name: getattr(self, name)[index] for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Share of each tenant; the last axis are the tenants, of length one where a figure is the host's."""

    occupancy_bytes: Array
    miss_frac: Array
    instruction_s: Array  # of one thread
    waiting_frac: Array  # of it, for cache and memory
    traffic_bytes_per_s: Array
    utilisation_frac: Array
    thread_ratio: Array


def share(host: Host, tenants: Tenants) -> Shared:
    """The steady state of tenants that run together."""
    ratio = host.thread_factor(tenants.num_active_threads.sum(axis=-1, keepdims=True))
    held = occupancy_bytes(host, tenants)
    miss = miss_frac(tenants, held)
    line_bytes = LINE_BYTES * (1.0 + tenants.written_frac)

    def at(utilisation: Array) -> tuple[Array, Array, Array]:
        wait = _waiting_s(host, tenants, miss, utilisation)
        time = _computing_s(host, tenants) * ratio + wait
        per_instruction = tenants.num_accesses_per_instruction * miss * line_bytes
        return wait, time, tenants.num_active_threads * per_instruction / time

    def excess(utilisation: Array) -> Array:
        return at(utilisation)[2].sum(axis=-1, keepdims=True) / host.memory_bandwidth_bytes_per_s - utilisation

    used = _root(excess, np.zeros_like(ratio), np.full_like(ratio, 1.0 - 1e-9))
    wait, time, traffic = at(used)
    return Shared(
        occupancy_bytes=held,
        miss_frac=miss,
        instruction_s=time,
        waiting_frac=wait / time,
        traffic_bytes_per_s=traffic,
        utilisation_frac=used,
        thread_ratio=ratio,
    )


def alone(host: Host, tenants: Tenants) -> Shared:
    """Each tenant by itself on the host, in the shape of the tenants."""
    deeper = Host(**{name: np.asarray(getattr(host, name))[..., None] for name in host.__slots__})
    found = share(deeper, tenants.of(..., None))
    return Shared(**{name: getattr(found, name)[..., 0] for name in found.__slots__})


def speed_frac(host: Host, tenants: Tenants) -> Array:
    """Speed of each among the others over its speed alone, at most 1: 1 minus its degradation."""
    return alone(host, tenants).instruction_s / share(host, tenants).instruction_s


def occupancy_bytes(host: Host, tenants: Tenants) -> Array:
    """Bytes of the cache that each holds; they add up to the cache where anybody runs.

    Accesses a second are those of each alone with an idle memory: a slowed tenant would insert somewhat less.
    """
    size = np.asarray(host.last_level_cache_bytes)
    miss = miss_frac(tenants, size)
    time = _computing_s(host, tenants) + _waiting_s(host, tenants, miss, np.zeros(1))
    pace = LINE_BYTES * tenants.num_active_threads * tenants.num_accesses_per_instruction / time

    def room(log_window: Array) -> Array:
        return size - _footprint_bytes(tenants, pace * np.exp(log_window)).sum(axis=-1, keepdims=True)

    most = np.maximum(pace.sum(axis=-1, keepdims=True), 1e-12)
    least = np.maximum((pace * tenants.streaming_frac).sum(axis=-1, keepdims=True), 1e-12)
    window = _root(room, np.log(size / most), np.log(size / least))
    return _footprint_bytes(tenants, pace * np.exp(window))


def miss_frac(tenants: Tenants, held_bytes: Array) -> Array:
    """Share of the accesses that miss in so many bytes."""
    reused = np.exp(-held_bytes / tenants.working_set_bytes)
    return tenants.streaming_frac + (1.0 - tenants.streaming_frac) * reused


def copies(one: Tenants, num: Array) -> Tenants:
    """Merge ``num`` threads of ``one``, each with its own working set, to one tenant; the shape is that of ``num``."""
    many = Tenants(**{name: getattr(one, name) * np.ones_like(num) for name in one.__slots__})
    return replace(
        many, num_active_threads=many.num_active_threads * num, working_set_bytes=many.working_set_bytes * num
    )


def stacked(hosts: Sequence[Host]) -> Host:
    """Hosts side by side: every field an array with a row a host."""
    return Host(**{name: np.array([[getattr(host, name)] for host in hosts]) for name in Host.__slots__})


def _footprint_bytes(tenants: Tenants, touched_bytes: Array) -> Array:
    """Distinct bytes among those touched: the solution of dc/dn = miss(c) for the exponential curve."""
    s, w = tenants.streaming_frac, tenants.working_set_bytes
    x = s * touched_bytes / w
    return w * (x + np.log1p(-(1.0 - s) * np.exp(-x)) - np.log(s))


def _computing_s(host: Host, tenants: Tenants) -> Array:
    return tenants.num_cycles_per_instruction / host.clock_hz


def _waiting_s(host: Host, tenants: Tenants, miss: Array, utilisation: Array) -> Array:
    """Waiting of one instruction for what its cores' own caches do not hold."""
    access_s = host.cache_hit_s + miss * host.loaded_memory_s(utilisation)
    return tenants.num_accesses_per_instruction * access_s / tenants.num_parallel_misses


def _root(falling: Any, low: Array, high: Array) -> Array:
    """Where a falling function of each entry crosses zero, by halving."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_below = falling(middle) > 0.0
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return 0.5 * (low + high)
