"""Whether the machine stayed what it was while it was measured: small fixed kernels, timed again and again.

A canary is one product and one stream of bytes that never change. Their times over a calibration say how far the
machine's own speed moved; the system's counters say whether other work, another guest or heat was the reason.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import psutil

from orrery.base.errors import OrreryError
from orrery.base.units import percent
from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.clock import deviation
from orrery.calibrate.measure.facts import affinity, is_virtual
from orrery.calibrate.measure.probes import Probe, Stream
from orrery.kernels.ops import Gemm

CANARY_SIZES = {"cpu": (384, 2**26), "gpu": (4096, 2**29)}
"""Side of the product and bytes of the stream: a few milliseconds at most, and beyond most caches."""

COMPUTE_SAMPLES, MEMORY_SAMPLES = 5, 3
"""A reading is their medians: 20 to 40 ms in all."""

OTHERS_BUSY_FRAC = 0.10
"""Other processes may take a tenth of our cores: a desktop's own work does, and a median hides it."""

STOLEN_FRAC = 0.02
"""The host may keep a fiftieth of our time for other guests; more shows in medians."""

JITTER_FRAC = 0.10
"""Canary samples in a row may differ by a tenth (robust deviation); on an idle machine they do by 1 to 3 %."""

DRIFT_RATIO = 1.10
"""The canary may be a tenth slower at one time than at another; boost clocks alone move by a few per cent."""

QUIET_WIDEN_RATIO = 1.03
"""Below this, the canary's movement is its own noise, and no interval is widened."""

WIDEN_QUANTILE = 0.9
"""Nine readings in ten lie within the widened interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time that the cores which we may use have spent so far."""

    total_s: float  # idle or not
    busy_s: float  # anybody's work
    own_s: float  # of this process and its children
    stolen_s: float | None  # kept by the host for other guests; None: not counted here


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The canary at one moment, and what the cores had spent by then."""

    at_s: float
    compute_s: float
    memory_s: float
    jitter_frac: float  # the larger robust deviation of the two, over the median
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Findings of the watch. Both ends of any interval move out by ``widen_ratio``: [low / ratio, high * ratio]."""

    widen_ratio: float
    drift_ratio: float  # slowest over fastest reading, the larger of compute and memory
    is_busy: bool
    is_throttling: bool
    words: tuple[str, ...]  # what disturbed the measurements, one sentence each
    missing: tuple[str, ...]  # counters that this system does not have

    @property
    def is_quiet(self) -> bool:
        """Whether nothing disturbed the measurements."""
        return not self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Two small pieces of work that never change, one bound by arithmetic and one by memory."""

    compute: Callable[[], object]
    memory: Callable[[], object]
    synchronise: Callable[[], object]
    read_clock: Callable[[], float] = time.perf_counter

    @classmethod
    def of(cls, backend: Backend) -> "Canary":
        """A product and a copy on the backend's device, in the first format it multiplies in."""
        side, footprint_bytes = CANARY_SIZES[backend.device_kind]
        gemm = Gemm(m=side, n=side, k=side, format=backend.formats()[0], is_cold=False)
        return cls(
            compute=_call(backend, gemm),
            memory=_call(backend, Stream(footprint_bytes=footprint_bytes)),
            synchronise=backend.synchronise,
        )

    def look(self) -> tuple[float, float, float]:
        """Seconds of the product and of the copy now, and how much they jitter."""
        compute, memory = self._samples(self.compute, COMPUTE_SAMPLES), self._samples(self.memory, MEMORY_SAMPLES)
        return median(compute), median(memory), max(_jitter(compute), _jitter(memory))

    def _samples(self, call: Callable[[], object], count: int) -> list[float]:
        """Without the first, which finds cold caches and sleeping threads."""
        samples: list[float] = []
        for _ in range(count + 1):
            self.synchronise()
            before = self.read_clock()
            call()
            self.synchronise()
            samples.append(self.read_clock() - before)
        return samples[1:]


class LoadMonitor:
    """Readings before, between and after measurements, and what they mean."""

    def __init__(self, canary: Canary, spent: Callable[[], Spent] | None = None) -> None:
        self.readings: list[Reading] = []
        self._canary = canary
        self._spent = spent or time_spent

    def look(self) -> Reading:
        """Takes a reading: 20 to 40 ms."""
        compute_s, memory_s, jitter_frac = self._canary.look()
        reading = Reading(
            at_s=self._canary.read_clock(),
            compute_s=compute_s,
            memory_s=memory_s,
            jitter_frac=jitter_frac,
            spent=self._spent(),
        )
        self.readings.append(reading)
        return reading

    def slowness(self, reading: Reading) -> tuple[float, float]:
        """How many times longer than usual the product and the copy took in ``reading``."""
        return (
            reading.compute_s / median(r.compute_s for r in self.readings),
            reading.memory_s / median(r.memory_s for r in self.readings),
        )

    def verdict(self) -> Verdict:
        """Over all readings so far."""
        if not self.readings:
            raise OrreryError("The watch has not looked yet: take a reading before the first measurement.")
        others_frac, stolen_frac = self._taken()
        busy = self._busy_words(others_frac, stolen_frac)
        drift_ratio, slowed_ratio = self._drift(), self._slowed()
        is_throttling = not busy and slowed_ratio > DRIFT_RATIO
        if is_throttling:
            host = ", or another guest of the same host" if is_virtual() else ""
            moved = (f"The machine became {slowed_ratio:.2f}x slower under our load alone: heat, a power limit{host}.",)
        elif drift_ratio > DRIFT_RATIO:
            moved = (f"The machine's speed moved by {drift_ratio:.2f}x while it was measured.",)
        else:
            moved = ()
        uncounted = "time that the host kept for other guests is not counted by this system"
        return Verdict(
            widen_ratio=self._widen(),
            drift_ratio=drift_ratio,
            is_busy=bool(busy),
            is_throttling=is_throttling,
            words=(*busy, *moved),
            missing=() if stolen_frac is not None else (uncounted,),
        )

    def _busy_words(self, others_frac: float, stolen_frac: float | None) -> tuple[str, ...]:
        jitter_frac = median(r.jitter_frac for r in self.readings)
        words = {
            f"Other processes took {percent(others_frac)} of the cores' time.": others_frac > OTHERS_BUSY_FRAC,
            f"The host kept {percent(stolen_frac or 0.0)} of the processor's time for other guests.": (
                stolen_frac or 0.0
            )
            > STOLEN_FRAC,
            f"The same small kernel, timed again at once, differs by {percent(jitter_frac)}.": jitter_frac
            > JITTER_FRAC,
        }
        return tuple(word for word, is_true in words.items() if is_true)

    def _taken(self) -> tuple[float, float | None]:
        """Shares of the cores' time that others and the host took between the first reading and the last."""
        first, last = self.readings[0].spent, self.readings[-1].spent
        total_s = last.total_s - first.total_s
        if total_s <= 0:
            return 0.0, None if last.stolen_s is None else 0.0
        others_s = (last.busy_s - first.busy_s) - (last.own_s - first.own_s)
        if last.stolen_s is None or first.stolen_s is None:
            return max(others_s, 0.0) / total_s, None
        return max(others_s, 0.0) / total_s, (last.stolen_s - first.stolen_s) / total_s

    def _times(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array([(r.compute_s, r.memory_s) for r in self.readings])

    def _drift(self) -> float:
        times = self._times()
        return float((times.max(axis=0) / times.min(axis=0)).max())

    def _slowed(self) -> float:
        """The product in the last third of the readings over the first third: it stays slower, not up and down."""
        compute, third = [r.compute_s for r in self.readings], len(self.readings) // 3
        return median(compute[-third:]) / median(compute[:third]) if third else 1.0

    def _widen(self) -> float:
        times = self._times()
        away = np.abs(np.log(times / np.median(times, axis=0)))
        ratio = float(np.exp(np.quantile(away, WIDEN_QUANTILE, axis=0).max()))
        return ratio if ratio > QUIET_WIDEN_RATIO else 1.0


def time_spent() -> Spent:
    """As the system counts it, now."""
    each = psutil.cpu_times(percpu=True)
    mine = [each[core] for core in affinity() if core < len(each)] or each
    steal: list[float] = [c.steal for c in mine if hasattr(c, "steal")]
    idle_s = sum(c.idle + getattr(c, "iowait", 0.0) for c in mine)
    guest_s = sum(getattr(c, "guest", 0.0) + getattr(c, "guest_nice", 0.0) for c in mine)  # counted in user, nice too
    total_s = sum(sum(c) for c in mine) - guest_s
    return Spent(
        total_s=total_s,
        busy_s=total_s - idle_s - sum(steal),
        own_s=_own_s(),
        stolen_s=sum(steal) if steal else None,
    )


def _own_s() -> float:
    """Processor time (s) of this process, of its children, and of children that have ended."""
    this = psutil.Process()
    readings = this.cpu_times()
    ours = readings.user + readings.system + readings.children_user + readings.children_system
    for child in this.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        ours += times.user + times.system
    return ours


def _call(backend: Backend, probe: Probe) -> Callable[[], object]:
    prepared = backend.prepare(probe)
    if isinstance(prepared, Unsupported):
        raise OrreryError(f"The canary cannot run on {backend.name}: {prepared.reason}.")
    return prepared.call


def _jitter(samples: list[float]) -> float:
    middle = median(samples)
    return deviation(samples) / middle if middle > 0 else 0.0
