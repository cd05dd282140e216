"""A frame whose heavy kernels run on engines of their own, beside a device that computes the rest of another frame.

    time / time alone = max(share on engines / engines, share of the rest / how much faster the rest has become)

Each engine works at the pace that the whole device had; whoever is slower sets the pace of frames. Engines pay off
until the rest takes longer than they do: beyond share / rest x faster more of them change nothing.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFrame:
    """The parts of a frame's time on the device alone, and what each of them gets."""

    engine_frac: float  # of the time, in kernels that engines take over
    num_engines: float
    rest_ratio: float  # how much faster the rest runs than before

    def __post_init__(self) -> None:
        if not (0.0 <= self.engine_frac <= 1.0 and self.num_engines > 0.0 and self.rest_ratio > 0.0):
            raise OutOfRange(f"{self}: write a share between 0 and 1, and counts and ratios above 0.")

    @property
    def speedup_ratio(self) -> float:
        """Frames a second over those of the device alone."""
        return 1.0 / max(self.engine_frac / self.num_engines, (1.0 - self.engine_frac) / self.rest_ratio)

    @property
    def enough_engines(self) -> float:
        """Beyond which the rest sets the pace."""
        return self.engine_frac * self.rest_ratio / (1.0 - self.engine_frac) if self.engine_frac < 1.0 else float("inf")
