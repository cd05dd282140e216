"""What the kernel fits share: error tables beside two baselines, interval quantiles, and the calibration file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tomli_w
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.files import write_atomically

Floats = NDArray[np.float64]
Spread = Mapping[str, float]

SOURCES = {
    "ml-energy": {
        "title": "ML.ENERGY leaderboard, data of v3, commit 0cd52da",
        "url": "https://github.com/ml-energy/leaderboard",
        "retrieved": "2026-11",
    },
    "aiconfigurator": {
        "title": "AIConfigurator performance database, commit 095f58a51c4c",
        "url": "https://github.com/ai-dynamo/aiconfigurator",
        "retrieved": "2026-11",
    },
    "vidur": {
        "title": "Vidur compute profiles, commit 7d47513363ec",
        "url": "https://github.com/microsoft/vidur",
        "retrieved": "2026-11",
    },
    "frontier": {
        "title": "Frontier operator profiles, commit a4b22df82118",
        "url": "https://github.com/NetX-lab/Frontier",
        "retrieved": "2026-11",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """Predicted over measured on the test rows of one group: ours, the datasheet roofline, three constants."""

    group: tuple[str, ...]
    rows: int
    ours: Floats
    roofline: Floats
    simple: Floats

    def line(self) -> str:
        """One line of a Markdown table."""
        cells = [*self.group, str(self.rows), *(errors(r) for r in (self.roofline, self.simple, self.ours))]
        return f"| {' | '.join(cells)} | {np.exp(np.median(np.log(self.ours))):.2f} |"


def errors(ratio: Floats) -> str:
    """Median/mean/90th percentile of the absolute relative error, in percent."""
    off = np.abs(ratio - 1) * 100
    return f"{np.median(off):.1f}/{off.mean():.1f}/{np.quantile(off, 0.9):.1f}"


def print_scores(scores: Sequence[Score]) -> None:
    """All groups, then all rows together."""
    print(
        "| " + " | ".join([*["group"] * len(scores[0].group), "rows", "roofline", "3 constants", "ours", "bias"]) + " |"
    )
    for score in scores:
        print(score.line())
    everything = Score(
        group=("all",) * len(scores[0].group),
        rows=sum(s.rows for s in scores),
        ours=np.concatenate([s.ours for s in scores]),
        roofline=np.concatenate([s.roofline for s in scores]),
        simple=np.concatenate([s.simple for s in scores]),
    )
    print(everything.line())


def quantiles(ratio: Floats) -> Spread:
    """Where measured/predicted lies 80 % and 95 % of the time."""
    at = np.quantile(ratio, [0.1, 0.9, 0.025, 0.975])
    return dict(zip(("low_80", "high_80", "low_95", "high_95"), (round(float(a), 4) for a in at), strict=True))


def baseline(roofs: tuple[Floats, Floats], time_s: Floats) -> Callable[[Floats, Floats], Floats]:
    """The three-constant rival, launch + max(compute / a, memory / b), fitted on the same rows."""
    compute_s, memory_s = roofs

    def predict(x: Floats, compute_s: Floats, memory_s: Floats) -> Floats:
        launch, compute, memory = np.exp(x)
        return launch + np.maximum(compute_s / compute, memory_s / memory)

    def residuals(x: Floats) -> Floats:
        return np.log(predict(x, compute_s, memory_s) / time_s)

    found = least_squares(residuals, np.log([2e-5, 0.5, 0.7]), loss="soft_l1", f_scale=0.1)
    return lambda c, m: predict(found.x, c, m)


def write_calibrations(path: Path, made_by: str, entries: Iterable[Mapping[str, object]]) -> None:
    """The calibration file, with only the sources that it uses."""
    listed = list(entries)
    used = {str(e["from"]) for e in listed}
    body = {"sources": {k: v for k, v in SOURCES.items() if k in used}, "calibration": listed}
    write_atomically(path, f"# made by: {made_by}\n" + tomli_w.dumps(body))
