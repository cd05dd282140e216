"""Every campaign predicted by constants that saw none of it, and by the shipped ones: what widths are learned from."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from campaign_folds import CAMPAIGN, NOTHING, folds
from engine_fit import Slopes, without
from engine_rows import METRICS, Measured, answer_of, value_of
from engine_tree import Key, Tree, nodes_of, row_constants, row_path, spoken_for

from orrery.evidence.serving_simulated import Ran
from orrery.serving.estimate import Estimate
from orrery.serving.extrapolation import ExtrapolationShare, bounds_of, extrapolation_share
from orrery.serving.intervals import Bounds, Figures

REPORTED = "reported only"
MORE = ("power_w", "latency_s", "output_tokens_per_s")
"""Scored beside what is fitted."""

MOST = {"static": 40, "offline": 40, "open": 60, "closed": 100}
"""Rows of one campaign that are scored, taken evenly: campaigns weigh the same."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictedValue:
    """One measured value, and what was said of it."""

    row: Measured
    metric: str
    measured: float
    left_out: float  # predicted by constants that saw no row of its campaign (or of what ``what`` names)
    shipped: float
    what: str
    doubt: ExtrapolationShare
    path: tuple[Key, ...]  # the nodes that other campaigns speak for
    figures: Figures
    bounds: Bounds
    fold: int  # that held it

    @property
    def error(self) -> float:
        """log(measured / predicted without the campaign)."""
        return float(np.log(self.measured / self.left_out))


def thin(rows: Sequence[Measured], most: Mapping[str, int], pools_most: int | None = None) -> list[Measured]:
    """As many rows of each campaign as its mode may have, taken evenly in their order."""
    by: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        by[row.campaign].append(row)
    found: list[Measured] = []
    for members in by.values():
        limit = most[members[0].workload.mode]
        if pools_most is not None and len(members[0].service.pools) > 1:
            limit = pools_most
        places = np.unique(np.linspace(0, len(members) - 1, min(limit, len(members))).round().astype(int))
        found += [members[i] for i in places]
    return found


def describe(
    rows: Sequence[Measured], used: Sequence[Measured], slopes: Slopes, tree: Tree, elsewhere: Tree
) -> list[PredictedValue]:
    """All scored rows, each by the constants of its fold and by the shipped ones; reported ones by the shipped.

    Where a fold leaves too few rows to fit, ``elsewhere`` speaks: what other engines' runs found.
    """
    found: list[PredictedValue] = []
    retained = [r for r in rows if not r.excluded]
    place = {id(r): n for n, r in enumerate(used)}
    for number, fold in enumerate(folds(retained)):
        held = np.zeros(len(used), dtype=bool)
        mine = [r for r, h in zip(retained, fold.held, strict=True) if h]
        names = {(r.campaign, r.model, r.deployment.engine.version) for r in mine}
        for row, n in ((r, place[id(r)]) for r in used):
            if fold.what == CAMPAIGN:
                held[n] = row.campaign == fold.campaign
            elif fold.what != NOTHING:
                held[n] = (row.campaign, row.model, row.deployment.engine.version) in names
        left = [r for r, h in zip(used, held, strict=True) if not h]
        own = tree
        if held.any():
            own = without(used, slopes, held) if nodes_of(left) else elsewhere
        seen = spoken_for(left)
        for row in mine:
            found += _describe(row, own, tree, seen, fold.what, number)
    for row in (r for r in rows if r.excluded):
        found += _describe(row, tree, tree, spoken_for(used), REPORTED, -1)
    return found


def _describe(row: Measured, own: Tree, tree: Tree, seen: Container[Key], what: str, fold: int) -> list[PredictedValue]:
    without_it, with_it = row_constants(own, row), row_constants(tree, row)
    answer = answer_of(row, without_it)
    if answer is None:
        return []
    shipped = answer if with_it == without_it else answer_of(row, with_it)
    metrics = {m: row.number(m) for m in (*METRICS[row.workload.mode], *MORE)}
    figures, bounds, doubt = _joint(row, answer)
    return [
        PredictedValue(
            row=row,
            metric=m,
            measured=v,
            left_out=value_of(row, answer, m),
            what=what,
            path=tuple(key for key in row_path(row) if key in seen),
            shipped=value_of(row, shipped, m) if shipped is not None else float("nan"),
            doubt=doubt,
            figures=figures,
            bounds=bounds,
            fold=fold,
        )
        for m, v in metrics.items()
        if v > 0
    ]


def _joint(row: Measured, answer: Estimate | Ran) -> tuple[Figures, Bounds, ExtrapolationShare]:
    """What ties an answer's metrics together, what bounds them, and what it rests on."""
    if isinstance(answer, Ran):
        return answer.figures, answer.bounds, answer.doubt
    figures = Figures(
        ttft_s=answer.ttft_s,
        tpot_s=answer.tpot_s,
        latency_s=answer.latency_s,
        requests_per_s=answer.requests_per_s,
        power_w=answer.power_w,
        steps=max(0.0, row.workload.output_tokens - 1.0),
    )
    return figures, bounds_of(row.deployment, row.workload), extrapolation_share(answer.steps.ticks.done)
