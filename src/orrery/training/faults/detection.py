"""How long a fault goes on before it is found: waiting for a timeout, or watching the rhythm of collectives.

Steps of a synchronous job are alike, and every rank takes part in every collective. So a rank that stops shows up as
the one whose next operation does not come, after a few steps; and a slow rank as the one that is late again and again:
the mean lateness of n steps has a deviation of noise / sqrt(n), so a delay of d per step stands out of it after

    n = (z noise / d)^2 steps,   z: the quantile that none of so many healthy ranks passes by chance

A timeout sees only what stops, and says nothing of where it stopped. [c4-2024]
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from orrery.training.faults.model import check_not_negative, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One kind of fault of a device: crash or hang (``slowdown_ratio`` infinite), or straggler (longer steps)."""

    name: str
    device_mtbf_s: float
    slowdown_ratio: float = math.inf

    def __post_init__(self) -> None:
        check_positive(self, "device_mtbf_s")

    @property
    def stops(self) -> bool:
        """Whether the job stands still with it."""
        return math.isinf(self.slowdown_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Delay between a fault and the earliest restart."""

    detection_s: float  # the job stands, or runs slowly
    diagnosis_s: float  # the job stands while the faulty node is found and set aside


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatDetection:
    """Every rank reports its collectives each ``report_s``; what is late is known with its node.

    ``noise_frac``: deviation of a healthy rank's arrival, in parts of a step. ``diagnosis_s``: setting the node aside.
    """

    step_s: float
    num_ranks: int
    report_s: float
    diagnosis_s: float
    noise_frac: float = 0.02
    num_missed_steps: int = 2
    false_alarm_frac: float = 0.01  # of windows in which every rank is healthy

    def __post_init__(self) -> None:
        check_positive(self, "step_s", "num_ranks", "noise_frac", "false_alarm_frac")
        check_not_negative(self, "report_s", "diagnosis_s", "num_missed_steps")

    @property
    def threshold(self) -> float:
        """Deviations that no healthy rank's mean passes, but for the false alarms that are allowed."""
        return NormalDist().inv_cdf(1.0 - self.false_alarm_frac / self.num_ranks)

    def slow_steps(self, slowdown_ratio: float) -> int:
        """Steps after which a straggler stands out as often as not."""
        delay = slowdown_ratio - 1.0
        return max(1, math.ceil((self.threshold * self.noise_frac / delay) ** 2)) if delay > 0.0 else 0

    def response(self, kind: FaultKind) -> Response:
        """Half a report and some steps, at the pace that the fault leaves."""
        steps_s = self.step_s * self.num_missed_steps
        if not kind.stops:
            steps_s = self.step_s * kind.slowdown_ratio * self.slow_steps(kind.slowdown_ratio)
        return Response(detection_s=self.report_s / 2.0 + steps_s, diagnosis_s=self.diagnosis_s)
