"""How wide intervals are: the size of errors when a whole campaign was left out, pooled along the tree of engines.

Each answer has three unsure factors (``orrery.serving.intervals``): the pace, the first token, the power. The size of a
factor's error in one kind of run is

    log size = of the mode + of having experts + of the engine + of its era + of the generation in it

        + of constants that had seen nothing of the engine, or nothing of it on this generation of devices

where each part is pulled towards nothing, so a kind of few campaigns takes the size of its parent. What is least is the
sum over values of log(size) + |error| / size (errors of a Laplace law), each campaign counting the same. Errors are
first divided by what their answers borrow and extrapolate, which the answer itself puts back (``wider_by``).

Levels are quantiles of error / size over all campaigns, each counting the same: so the errors that a campaign's rows
have in common, which a hash of rows cannot show, are in them. At last all levels are stretched by the one factor with
which widths that never saw a campaign hold as much of it as they say, over all campaigns.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from engine_rows import kind_of
from engine_scores import PredictedValue
from engine_tree import ROOT, Floats, Key
from intervals import QUANTILES
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

SHARES = {"80": 0.8, "95": 0.95}
STRETCHES = np.geomspace(0.5, 4.0, 121)
"""Factors on all levels that are tried."""

NEW_ENGINE, NEW_GENERATION = ("new engine", ROOT), ("new generation", ROOT)
"""Parts of sizes where no constants of the engine, or none of it on this generation, were fitted."""

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
    stretch: dict[str, float]  # by share, in %

    def size(self, mode: str, path: Iterable[Key]) -> float:
        """Of one kind of run."""
        return float(np.exp(sum(self.parts.get(name, 0.0) for name in _names(mode, tuple(path)))))

    def ends(self, mode: str, path: Iterable[Key]) -> dict[str, float]:
        """Of one kind of run, the logarithms of its four quantiles before they are stretched."""
        size, levels = self.size(mode, path), self.levels.get(mode.partition(" ")[0], self.levels[""])
        return {name: level * size for name, level in levels.items()}

    def spread(self, mode: str, path: Iterable[Key]) -> dict[str, float]:
        """Truth / prediction at four quantiles; 1 is always inside."""
        logs = self.ends(mode, path)
        ends = {name: float(np.exp(log * self.stretch[name[-2:]])) for name, log in logs.items()}
        return {k: float(f"{(min if v < 1 else max)(ends[k], v):.4g}") for k, v in LEAST.items()}


def _names(kind: str, path: tuple[Key, ...]) -> list[tuple[str, Key]]:
    mode, _, experts = kind.partition(" ")
    found = [("", ROOT), (mode, ROOT), *([(experts, ROOT)] if experts else []), *(("", k) for k in path if k != ROOT)]
    if not any(name for name, _, _ in path):
        return [*found, NEW_ENGINE]
    return found if any(name and generation for name, _, generation in path) else [*found, NEW_GENERATION]


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


def calibrated(errors: Errors) -> Widths:
    """The widths of all errors, stretched until widths that had not seen a campaign hold what they say of it."""
    left_out: list[tuple[np.ndarray, Widths]] = []
    for campaign in np.unique(errors.campaign):
        mine = errors.campaign == campaign
        left_out.append((np.flatnonzero(mine), widths(errors.take(~mine))))
    return replace(widths(errors), stretch={name: stretch_of(errors, left_out, name) for name in SHARES})


def stretch_of(errors: Errors, left_out: Sequence[tuple[np.ndarray, Widths]], name: str) -> float:
    """The least factor on the levels of one share with which that share of the errors' weight is inside."""
    low, high = np.zeros(errors.error.size), np.zeros(errors.error.size)
    for places, found in left_out:
        for i in places:
            ends = found.ends(errors.mode[i], errors.path[i])
            low[i], high[i] = ends[f"low_{name}"], ends[f"high_{name}"]
    weight = errors.weight / errors.weight.sum()
    for factor in STRETCHES:
        inside = (errors.error >= low * factor) & (errors.error <= high * factor)
        if weight[inside].sum() >= SHARES[name]:
            return float(factor)
    return float(STRETCHES[-1])


def widths(errors: Errors, stretch: Mapping[str, float] | None = None) -> Widths:
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
            for name, share in QUANTILES.items()
        }
        for mode in ("", *sorted(set(modes.tolist())))
    }
    parts = dict(zip(names, found.tolist(), strict=True))
    return Widths(parts=parts, levels=levels, stretch=dict(stretch or dict.fromkeys(SHARES, 1.0)))


def weighted_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The value below which that share of the weight lies, between values in proportion."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) - weight[order] / 2
    return float(np.interp(share * weight.sum(), below, values[order]))


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
