"""Whether layouts come in the right order: what a search over layouts needs most."""

import numpy as np
from numpy.typing import NDArray

from scorecard_rows import Scored

FEWEST_LAYOUTS = 4
"""A group with fewer different layouts says little about their order."""


def rank_correlations(s: Scored, who: str = "ours") -> list[float]:
    """Spearman's correlation of measured and predicted tokens a second and device, of every group of layouts.

    A group is one model, sequence length, device, device count and precision of one table. Several rows of the same
    layout count once, by their medians. Who says the same of all of them has no order: 0.
    """
    predicted, tokens = getattr(s, who), s.words["tokens"].astype(float)
    keys = np.char.add(np.char.add(s.words["framework"], " "), s.words["group"])
    out: list[float] = []
    for key in np.unique(keys):
        rows = (keys == key) & np.isfinite(predicted)
        layouts = np.unique(s.words["layout"][rows])
        if len(layouts) < FEWEST_LAYOUTS:
            continue
        here = [rows & (s.words["layout"] == x) for x in layouts]
        true, text = (np.array([np.median(tokens[h] / v[h]) for h in here]) for v in (s.measured, predicted))
        has_order = min(np.ptp(true), np.ptp(text)) > 0.0
        out.append(float(np.corrcoef(ranks(true), ranks(text))[0, 1]) if has_order else 0.0)
    return out


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of every value in their order; equal ones share the middle of theirs."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2.0
