"""The constants of a device that is being measured, as unknowns with a prior.

Before anything is measured, constants are those of machines of the kind; how far a new machine may be from them is one
factor that all constants of a nature share (its calls, its arithmetic, its memory, its caches) and one of each
constant's own. The shared factors are why ten measurements go a long way: they stand for the few numbers by which
machines differ, as device embeddings do in few-shot latency predictors [Lee et al. 2021, HELP].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.posterior import Posterior
from orrery.calibrate.device.work import Work, stacked
from orrery.hardware.calibration import Calibration, one_for_all
from orrery.hardware.device import Device
from orrery.kernels import host
from orrery.kernels.attention.decode import CHOICES as DECODE_CHOICES
from orrery.kernels.attention.prefill import CHOICES as PREFILL_CHOICES
from orrery.kernels.gemm.machine import CHOICES as GEMM_CHOICES
from orrery.kernels.host.amounts import CHOICES as HOST_CHOICES

Floats = NDArray[np.float64]
Key = tuple[str, str, str]

CHOICES = GEMM_CHOICES | PREFILL_CHOICES | DECODE_CHOICES | HOST_CHOICES
SHARED, OWN = 0.3, 0.2
"""One sigma (log) of the factor that constants of a nature share, and of each one's own. Assumed: shares of a roof
that anchors set on the machine itself differ by a third from machine to machine, and by a fifth each on its own."""

NATURES: Mapping[str, str] = {
    "product": "arithmetic",
    "peak": "arithmetic",
    "score": "arithmetic",
    "memory": "memory",
    "bandwidth": "memory",
    "rate": "memory",
    "gemv": "memory",
    "feed": "memory",
    "cache": "caches",
    "entry": "caches",
    "stream": "caches",
}
"""A word in a constant's name -> what it shares its factor with; the last that occurs. Seconds are calls'."""

STEP = 1e-4


def nature_of(constant: str) -> str:
    """Kind of a constant: constants of one kind share their factor."""
    if constant.endswith("_s"):
        return "calls"
    found = [nature for word, nature in NATURES.items() if word in constant.split("_")]
    return found[-1] if found else constant


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitParameters:
    """Constants of some calibrations of a device, as a vector of logarithms; ``prior`` is what is believed at first."""

    device: Device
    names: tuple[tuple[Key, str], ...]
    prior: Posterior
    _sums: dict[int, "_Sum"] = field(default_factory=dict[int, "_Sum"], repr=False)

    def device_at(self, x: Floats) -> Device:
        """The device with these constants."""
        return replace(self.device, calibrations={**self.device.calibrations, **self.calibrations(x)})

    def calibrations(self, x: Floats) -> dict[Key, Calibration]:
        """Every calibration with these constants; a share of a roof stays below it."""
        changed: dict[Key, dict[str, float]] = {}
        for (key, name), value in zip(self.names, np.exp(x).tolist(), strict=True):
            bounded = min(1.0, value) if name.endswith("_frac") else value
            changed.setdefault(key, dict(self.device.calibrations[key].constants))[name] = bounded
        known = self.device.calibrations
        return {
            key: replace(known[key], constants=constants, residual=None, row_spread=one_for_all)
            for key, constants in changed.items()
        }

    def predict(self, works: Sequence[Work], x: Floats) -> tuple[Floats, Floats]:
        """Times of ``works``, and d log time / d x, one row each."""
        device, bounded = self.device_at(x), np.where(self._is_share, np.minimum(x, 0.0), x)
        times, slopes = np.empty(len(works)), np.zeros((len(works), len(self.names)))
        others: list[int] = []
        for row, work in enumerate(works):
            if device.calibrations[work.key].law != host.LAW:
                others.append(row)
                continue
            sum_of = self._sum_of(work)
            terms = sum_of.amounts * np.exp(sum_of.signs * bounded[sum_of.unknowns])
            times[row] = terms.sum()
            slopes[row, sum_of.unknowns] = sum_of.signs * terms / times[row]
        for rows, stack in stacked([(row, works[row]) for row in others]):
            times[rows] = stack.time_s(device)
            for i, (key, name) in enumerate(self.names):
                if key == stack.key:
                    slopes[rows, i] = _slope(stack, device, name, times[rows])
        return times, slopes

    @property
    def _is_share(self) -> NDArray[np.bool_]:
        return np.array([name.endswith("_frac") for _, name in self.names])

    def _sum_of(self, work: Work) -> "_Sum":
        """The work as the host law's sum, worked out once."""
        if (known := self._sums.get(id(work))) is None:
            index = {name: i for i, name in enumerate(self.names)}
            constants = self.device.calibrations[work.key].constants
            found = host.amounts(work.op, self.device, constants)
            retained = [name for name, amount in found.items() if float(amount) > 0]
            known = self._sums[id(work)] = _Sum(
                work=work,
                unknowns=np.array([index[work.key, name] for name in retained], dtype=np.int64),
                amounts=np.array([float(found[name]) for name in retained]),
                signs=np.array([1.0 if name.endswith("_s") else -1.0 for name in retained]),
            )
        return known


def _slope(work: Work, device: Device, name: str, time_s: Floats) -> Floats:
    """d log time / d log constant, by a small step."""
    calibration = device.calibrations[work.key]
    more = {**calibration.constants, name: calibration.constants[name] * np.exp(STEP)}
    tried = {**device.calibrations, work.key: replace(calibration, constants=more)}
    return np.log(work.time_s(replace(device, calibrations=tried)) / time_s) / STEP


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sum:
    """A time that is a sum of amounts x constants (sign 1) and amounts / constants (sign -1)."""

    work: Work  # kept alive, for its identity is the key
    unknowns: NDArray[np.int64]
    amounts: Floats
    signs: Floats


def unknowns_of(device: Device, keys: Sequence[Key]) -> FitParameters:
    """The constants behind ``keys`` on ``device``, believed to be what its calibrations say.

    Constants of other keys are laid aside: none answers where one of ``keys`` does, and every look-up reads past them.
    """
    device = replace(device, calibrations={key: device.calibrations[key] for key in dict.fromkeys(keys)})
    names = tuple(
        (key, name)
        for key in dict.fromkeys(keys)
        for name, value in device.calibrations[key].constants.items()
        if name not in CHOICES and value > 0
    )
    mean = np.log([device.calibrations[key].constants[name] for key, name in names])
    natures = np.array([nature_of(name) for _, name in names])
    shared = SHARED**2 * (natures[:, None] == natures[None, :])
    covariance = shared + OWN**2 * np.eye(len(names))
    return FitParameters(device=device, names=names, prior=Posterior(mean=mean, covariance=covariance))
