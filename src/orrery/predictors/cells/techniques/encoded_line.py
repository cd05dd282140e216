"""Encoded line: latency as a weighted sum of a network's encoded choices, by ridge regression. [hoerl-1970]"""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.predictors.cells.latency import Floats
from orrery.predictors.cells.learned import Fit, OnStep, Predictor, Samples
from orrery.predictors.cells.space import Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class LineKnobs:
    """Strength of the pull of weights to zero, in timings of noise."""

    ridge_ratio: float = 1.0

    def __post_init__(self) -> None:
        check_above(self, "ridge_ratio", 0.0)


def rule(knobs: LineKnobs, on_step: OnStep) -> Fit:
    """Return the fit, unprepared; weights solve (X^T X + ridge) w = X^T (t - mean), X without its own means."""

    def fit(samples: Samples) -> Predictor:
        encode = samples.plan.space.encode
        lines = encode(samples.cells).astype(np.float64)
        mean, middle = samples.latency_s.mean(), lines.mean(axis=0)
        lines -= middle
        inner = lines.T @ lines + knobs.ridge_ratio * np.eye(lines.shape[1])
        weights: Floats = np.asarray(np.linalg.solve(inner, lines.T @ (samples.latency_s - mean)), dtype=np.float64)

        def predict(cells: Cells) -> Floats:
            return mean + (encode(cells) - middle) @ weights

        return predict

    return fit


TECHNIQUE = Technique(
    name="encoded-line",
    extension_point="predictors.cell-latency",
    rule=rule,
    knobs=LineKnobs,
    gains="One solve, and as good as anything where latencies add up.",
    costs="Cannot know that launches hide behind kernels and kernels behind launches.",
    claims=("hoerl-1970",),
)
