"""Samples of launches: in cycles, as the kernels themselves count them, or in seconds between events."""

from collections.abc import Callable

from orrery.calibrate.micro.cuda.driver import POINTER
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.reading import repeated

OUT_BYTES = 4096
"""Room for what kernels of a few blocks write."""


def cycles(gpu: Gpu, launched: Callable[[], object], out: POINTER, *, per: float = 1.0, blocks: int = 1) -> list[float]:
    """Cycles of the slowest of ``blocks`` blocks, which they wrote to ``out``, for each of ``per`` equal parts."""

    def sample() -> float:
        launched()
        return max(gpu.read(out, blocks)) / per

    return repeated(sample)


def seconds(gpu: Gpu, launched: Callable[[], object]) -> list[float]:
    """Seconds of the device."""
    return repeated(lambda: gpu.elapsed_s(launched))
