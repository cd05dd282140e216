"""Prior of a device before it is measured: the constants of its kind."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.calibrate.device.draft import GENERATION
from orrery.calibrate.measure.backends.backend import Backend
from orrery.catalog.calibrations import calibrations_for
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels import host
from orrery.kernels.attention.choice import choose
from orrery.kernels.resolve import OTHER_ENGINE, OTHER_FORMAT, find

ELEMENTWISE = ("norm", "gated_activation", "sample")
HIGHER_PRECISION = ("fp32", "fp16", "bf16")
"""Formats that attention and element-wise kernels are asked for in."""

LOOPBACK = {"launch_s": 1e-6, "bulk_step_s": 2.5e-5, "bulk_rate_frac": 0.16, "pipeline_ratio": 0.0}
"""Where the search starts for two processes over TCP: some system calls, and six copies through the memory, as two
cores of one Xeon showed it."""

LOOPBACK_SPREAD = Spread(
    low_80_ratio=0.8, high_80_ratio=1.25, low_95_ratio=0.7, high_95_ratio=1.5, because="assumed of exchanges over TCP"
)


def with_prior(device: Device, backend: Backend, formats: Sequence[str]) -> Device:
    """The device with constants to start from, filed under the engine that the backend is."""
    if not device.calibrations:
        device = replace(device, calibrations=calibrations_for("", device.generation))
    found = _of_a_cpu(backend, formats) if device.kind == "cpu" else _of_a_gpu(device, backend, formats)
    links = _loopback() if device.kind == "cpu" else ()
    known = {(c.op, c.format, c.engine): c for c in (*found, *links)}
    return replace(device, calibrations={**device.calibrations, **known})


def _of_a_cpu(backend: Backend, formats: Sequence[str]) -> Iterator[Calibration]:
    """The constants of calls on CPUs; another library, or another format, is further from them."""
    for known in calibrations_for("", GENERATION["cpu"]).values():
        if known.law == host.LAW:
            for format in formats:
                ratio = (OTHER_ENGINE if backend.name != known.engine else 1.0) * (
                    OTHER_FORMAT if format != known.format.split("+")[0] else 1.0
                )
                spread = known.spread.widened(ratio, f"as {known.engine} in {known.format}")
                yield replace(known, format=_like(known, format), engine=backend.name, spread=spread)


def _of_a_gpu(device: Device, backend: Backend, formats: Sequence[str]) -> Iterator[Calibration]:
    """The constants that this device's own measurements, its generation or all GPUs give."""
    for format in formats:
        lookups = [lambda f=format: find(device, "gemm", f)]
        if format in HIGHER_PRECISION:
            lookups += [
                lambda f=format, op=op: choose(device, op, f, f, "").calibration
                for op in ("attention_prefill", "attention_decode")
            ]
        if format == "bf16":
            lookups += [lambda kind=kind: find(device, f"elementwise_{kind}", "bf16", "vllm") for kind in ELEMENTWISE]
        for look in lookups:
            try:
                known = look()
            except OutOfRange:
                continue
            yield replace(known, format=_like(known, format), engine=backend.name, residual=None)


def _like(known: Calibration, format: str) -> str:
    """``format`` as the calibration names its own: compute+cache, or one."""
    return f"{format}+{format}" if "+" in known.format else format


def _loopback() -> Iterator[Calibration]:
    for kind in ("send_recv", "all_reduce"):
        yield Calibration(
            op=kind,
            format="any",
            engine="tcp",
            origin="any",
            constants=LOOPBACK,
            spread=LOOPBACK_SPREAD,
            range={"num_devices": (2.0, 2.0)},
        )
