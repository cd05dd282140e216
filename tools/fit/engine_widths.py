"""How wide intervals are: the size of errors when a whole campaign was left out, pooled along the tree of engines.

Each answer has three unsure factors (``orrery.serving.intervals``): the pace, the first token, the power. The size of a
factor's error in one kind of run is

    log size = of the mode + of having experts + of the engine + of its era + of the generation in it

where each part is pulled towards nothing, so a kind of few campaigns takes the size of its parent. What is least is the
sum over values of log(size) + |error| / size (errors of a Laplace law), each campaign counting the same. Errors are
first divided by what their answers borrow and extrapolate, which the answer itself puts back (``wider_by``).

Levels are quantiles of error / size over all campaigns, each counting the same: so the errors that a campaign's rows
have in common, which a hash of rows cannot show, are in them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from engine_rows import kind_of
from engine_scores import PredictedValue
from engine_tree import ROOT, Floats, Key
from scipy.optimize import minimize

from orrery.serving.extrapolation import wider_by

FACTORS = ("tpot_s", "ttft_s", "power_w")
FACTOR_OF = {
    "static": {"latency_s": "tpot_s", "tpot_s": "tpot_s", "ttft_s": "ttft_s"},
    "offline": {"output_tokens_per_s": "tpot_s", "tpot_s": "tpot_s", "ttft_s": "ttft_s"},
    "closed": {"output_tokens_per_s": "tpot_s", "tpot_s": "tpot_s", "ttft_s": "ttft_s"},
    "open": {"tpot_s": "tpot_s", "ttft_s": "ttft_s"},
}
"""Which factor the error of a metric shows, by mode."""

LEVELS = {"low_80": 0.12, "high_80": 0.88, "low_95": 0.03, "high_95": 0.97}
"""A little inside: sizes are pulled towards their parents', which leaves the well known ones too wide."""

LEAST = {"low_80": 0.97, "high_80": 1.03, "low_95": 0.95, "high_95": 1.05}
"""No interval is narrower: the same run, repeated, is as far apart."""

PULL_SD = 0.35
"""Standard deviation of a part's logarithm, and of a mode's around that of all modes."""

CAMPAIGN_COUNTS, FULL = 4.0, 10
"""Values that one campaign counts for, its errors have much in common; and the rows that make it count so much."""

OTHER_MODES = 0.1
"""How much errors of other kinds of runs count for a kind's levels."""

SMALLEST, LARGEST = 0.01, 1.0
"""Of |error|: nearer is a matter of luck, and farther is something else than an error of size."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Errors:
    """Errors of one factor, as far as it can be told from others."""

    error: Floats  # log(measured / predicted), over what the answer says of borrowed constants
    mode: tuple[str, ...]
    path: tuple[tuple[Key, ...], ...]
    campaign: np.ndarray

    @property
    def weight(self) -> Floats:
        """Campaigns count the same, but for those of a few rows."""
        _, place, count = np.unique(self.campaign, return_inverse=True, return_counts=True)
        return (CAMPAIGN_COUNTS * np.minimum(1.0, count / FULL) / count)[place]

    def take(self, mask: np.ndarray) -> "Errors":
        """Some of them."""
        places = np.flatnonzero(mask)
        return Errors(
            error=self.error[mask],
            mode=tuple(self.mode[i] for i in places),
            path=tuple(self.path[i] for i in places),
            campaign=self.campaign[mask],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """The sizes of one factor's errors and the levels around them."""

    parts: dict[tuple[str, Key], float]  # ("mode", ROOT), ("", node)
    levels: dict[str, dict[str, float]]  # by mode; blank: of any

    def size(self, mode: str, path: Iterable[Key]) -> float:
        """Of one kind of run."""
        return float(np.exp(sum(self.parts.get(name, 0.0) for name in _names(mode, tuple(path)))))

    def spread(self, mode: str, path: Iterable[Key]) -> dict[str, float]:
        """Truth / prediction at four quantiles; 1 is always inside."""
        size, levels = self.size(mode, path), self.levels.get(mode.partition(" ")[0], self.levels[""])
        ends = {name: float(np.exp(level * size)) for name, level in levels.items()}
        return {k: float(f"{(min if v < 1 else max)(ends[k], v):.4g}") for k, v in LEAST.items()}


def _names(kind: str, path: tuple[Key, ...]) -> list[tuple[str, Key]]:
    mode, _, experts = kind.partition(" ")
    return [("", ROOT), (mode, ROOT), *([(experts, ROOT)] if experts else []), *(("", k) for k in path if k != ROOT)]


def errors_of(description: Sequence[PredictedValue], factor: str) -> Errors:
    """The values that show a factor, but for rows that are only reported."""
    mine = [
        t
        for t in description
        if FACTOR_OF[t.row.workload.mode].get(t.metric, t.metric) == factor and not t.row.excluded
    ]
    wider = [wider_by(t.doubt, has_version=True)[0] for t in mine]
    return Errors(
        error=np.array([t.error / w for t, w in zip(mine, wider, strict=True)]),
        mode=tuple(kind_of(t.row) for t in mine),
        path=tuple(t.path for t in mine),
        campaign=np.array([t.row.campaign for t in mine]),
    )


def widths(errors: Errors) -> Widths:
    """The sizes that make the errors likeliest, and the levels of what is left."""
    names = sorted({n for m, p in zip(errors.mode, errors.path, strict=True) for n in _names(m, p)})
    place = {name: i for i, name in enumerate(names)}
    design = np.zeros((errors.error.size, len(names)))
    for row, (mode, path) in enumerate(zip(errors.mode, errors.path, strict=True)):
        design[row, [place[n] for n in _names(mode, path)]] = 1.0
    weight, far = errors.weight, np.clip(np.abs(errors.error), SMALLEST, LARGEST)
    pull = np.array([0.0 if name == ("", ROOT) else 1.0 / PULL_SD**2 for name in names])

    def likelihood(parts: Floats) -> tuple[float, Floats]:
        log_size = design @ parts
        scaled = far * np.exp(-log_size)
        value = (weight * (log_size + scaled)).sum() + 0.5 * (pull * parts**2).sum()
        return float(value), design.T @ (weight * (1.0 - scaled)) + pull * parts

    start = np.where([name == ("", ROOT) for name in names], np.log(0.2), 0.0)
    found = minimize(likelihood, start, jac=True, method="L-BFGS-B").x
    scaled = errors.error / np.exp(design @ found)
    modes = np.array([kind.partition(" ")[0] for kind in errors.mode])
    levels = {
        mode: {
            name: weighted_quantile(scaled, weight * np.where((modes == mode) | (mode == ""), 1.0, OTHER_MODES), share)
            for name, share in LEVELS.items()
        }
        for mode in ("", *sorted(set(modes.tolist())))
    }
    return Widths(parts=dict(zip(names, found.tolist(), strict=True)), levels=levels)


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The value below which that share of the weight lies, between values in proportion."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) - weight[order] / 2
    return float(np.interp(share * weight.sum(), below, values[order]))


def unseen(errors: Errors) -> Floats:
    """By value, whether the 80 % interval held it, with widths that had not seen its campaign; then its half-width."""
    held, half = np.zeros(errors.error.size), np.zeros(errors.error.size)
    for campaign in np.unique(errors.campaign):
        mine = errors.campaign == campaign
        found = widths(errors.take(~mine))
        for i in np.flatnonzero(mine):
            spread = found.spread(errors.mode[i], errors.path[i])
            held[i] = spread["low_80"] <= np.exp(errors.error[i]) <= spread["high_80"]
            half[i] = (spread["high_80"] - spread["low_80"]) / 2
    return np.stack([held, half])


def shared_fracs(description: Sequence[PredictedValue]) -> tuple[float, float]:
    """Shares of the squared log error of the pace that one model's runs of a campaign have in common, and that all
    of a campaign's have: mean over pairs of the product of errors, over the mean square; values beyond 1 count as 1."""
    by_model: dict[tuple[str, ...], list[float]] = defaultdict(list)
    by_campaign: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for t in description:
        if t.metric == "tpot_s" and not t.row.excluded:
            error = float(np.clip(t.error, -1.0, 1.0))
            by_model[t.row.campaign, t.row.model].append(error)
            by_campaign[t.row.campaign].append((t.row.model, error))
    same = [_common(np.array(e)) for e in by_model.values() if len(e) > 2]
    others: list[tuple[float, float]] = []
    for members in by_campaign.values():
        means = defaultdict(list)
        for model, error in members:
            means[model].append(error)
        if len(means) > 1:
            middle = np.array([np.mean(e) for e in means.values()])
            others.append((_common(middle)[0], float(np.mean(np.square([e for _, e in members])))))
    return _share(same), _share(others)


def _common(errors: Floats) -> tuple[float, float]:
    n = errors.size
    return float((errors.sum() ** 2 - (errors**2).sum()) / (n * (n - 1))), float((errors**2).mean())


def _share(pairs: Sequence[tuple[float, float]]) -> float:
    return max(0.0, sum(p for p, _ in pairs) / max(sum(s for _, s in pairs), 1e-12))
