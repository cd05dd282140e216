"""Serving runs of campaigns that no constant and no width had seen, as the fit of engines left them in the numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scorecard_rows import Scored, join

BY_CAMPAIGN = "serving, a campaign left out"
"""In the accuracy file, what tools/fit/engines.py found; kept as it is."""

FEWEST = 8
"""Rows below which a campaign is shown but does not count in medians over campaigns."""

REPORTED = "reported only"

Campaigns = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By metric and campaign: its numbers."""

TEXT = """
A campaign is one source's runs in one setting: how the load is made, engine, era of its defaults, generation of
devices ([`evidence/campaign.py`](../src/orrery/evidence/campaign.py)). Constants and widths of intervals that predict
it never saw one of its rows. Where it is the only campaign of its engine or of its generation, a model (or a release)
of it is left out instead, and the column says so; *nothing* means that it has neither and nothing was left out. The
rivals are fitted to the same rows: other campaigns of the engine. *Split by hash* is orrery with the constants that
ship, which saw rows of other models from the same campaign. Campaigns count the same in medians over campaigns if they
have eight rows; rows of `tools/excluded.toml` are reported, not counted. `python tools/fit/engines.py --data
../shared/data` finds these numbers (a cell: median / 90th percentile in percent).
"""

KINDS = (
    ("closed loops", "closed", 1),
    ("separate prefill and decode", "closed", 2),
    ("open loops", "open", 1),
    ("offline", "offline", 1),
    ("static batches", "static", 1),
)
SHOWN = {
    "closed": ("tpot_s", "ttft_s"),
    "open": ("tpot_s", "ttft_s", "latency_s"),
    "offline": ("output_tokens_per_s",),
    "static": ("latency_s", "tpot_s", "ttft_s", "power_w"),
}


def counted(campaigns: Mapping[str, Mapping[str, Any]], mode: str = "", pools: int = 0) -> list[Mapping[str, Any]]:
    """The campaigns of a metric that enter medians, of one kind of run where it is named."""
    return [
        e
        for e in campaigns.values()
        if e["rows"] >= FEWEST
        and e["left_out"] != REPORTED
        and mode in ("", e["mode"])
        and (not pools or min(e["pools"], 2) == pools)
    ]


def middle(entries: Sequence[Mapping[str, Any]], word: str) -> float:
    """The median over campaigns, each counting the same; NaN where none has it."""
    known = [e[word] for e in entries if word in e]
    return float(np.median(known)) if known else float("nan")


def lines(found: Campaigns) -> list[str]:
    """One table a metric: every campaign, and the median over those that count."""
    out: list[str] = []
    for metric, campaigns in found.items():
        out += [
            f"\n### `{metric}` of campaigns left out\n",
            "| campaign | rows | left out | roofline | five constants | **orrery** | bias | shipped | in 80 % "
            "| half-width |",
            "|" + "---|" * 10,
        ]
        for name, e in campaigns.items():
            out.append(
                f"| {name} | {e['rows']} | {e['left_out']} | {_pct(e.get('roofline_median'))} "
                f"| {_pct(e.get('closed_median'))} | **{_pct(e['median'])} / {_pct(e['p90'])}** "
                f"| {100 * e['bias']:+.1f} | {_pct(e.get('shipped_median'))} | {_pct(e.get('covered_80'), 0)} "
                f"| {_pct(e.get('half_width'))} |"
            )
        if counting := counted(campaigns):
            cells = [_pct(middle(counting, w)) for w in ("roofline_median", "closed_median", "median", "p90")]
            mean_covered = float(np.mean([e["covered_80"] for e in counting if "covered_80" in e]))
            out.append(
                f"| **median over {len(counting)} campaigns** | {sum(e['rows'] for e in counting):,} | | {cells[0]} "
                f"| {cells[1]} | **{cells[2]} / {cells[3]}** | {100 * middle(counting, 'bias'):+.1f} "
                f"| {_pct(middle(counting, 'shipped_median'))} | {_pct(mean_covered, 0)} "
                f"| {_pct(middle(counting, 'half_width'))} |"
            )
    return out


def summary(found: Campaigns, scored: Sequence[Scored]) -> list[str]:
    """The README's table: medians over campaigns left out beside the split by hash, by kind of run and metric."""
    if not found:
        return []
    out = [
        "| serving runs | campaigns | rows | datasheet roofline | five fitted constants "
        "| **orrery, campaign left out** | orrery, split by hash | in the 80 % interval |",
        "|" + "---|" * 8,
    ]
    for title, mode, pools in KINDS:
        for metric in SHOWN[mode]:
            if not (entries := counted(found.get(metric, {}), mode, pools)):
                continue
            covered = float(np.mean([e["covered_80"] for e in entries if "covered_80" in e]))
            cells = [_pct(middle(entries, w)) for w in ("roofline_median", "closed_median", "median")]
            out.append(
                f"| {title}: `{metric}` | {len(entries)} | {sum(e['rows'] for e in entries):,} "
                f"| {cells[0]} | {cells[1]} "
                f"| **{cells[2]}** | {_pct(_by_hash(scored, metric, mode, pools))} | {_pct(covered, 0)} |"
            )
    return out


def _by_hash(scored: Sequence[Scored], metric: str, mode: str, pools: int) -> float:
    """The median over test rows; of several pools where their tables are named for it."""
    parts = [
        s.take(s.words["mode"] == mode)
        for s in scored
        if s.metric == metric and "mode" in s.words and s.table.startswith("disaggregated") == (pools > 1)
    ]
    parts = [p for p in parts if len(p.measured)]
    return join(parts).score().median_abs_error_frac if parts else float("nan")


def _pct(value: float | None, digits: int = 1) -> str:
    return "" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f}"
