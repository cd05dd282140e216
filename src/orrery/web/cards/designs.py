"""Cards of a design and of two designs side by side."""

from collections.abc import Mapping
from typing import Any

from orrery.reports.words import BOUND_BY
from orrery.scenario.ask import Answer, InfeasibleAnswer
from orrery.web.cards.card import ShareCard
from orrery.web.cards.commands import about
from orrery.web.compare.figures import Compared
from orrery.web.compare.sides import Side
from orrery.web.design.figures import figures, headline

SHOWN = ("ttft_s", "tpot_s", "output_tokens_per_s", "usd_per_million_tokens", "energy_j_per_token")
"""Figures of a card."""


def design_card(answer: Answer | InfeasibleAnswer, settings: Mapping[str, Any]) -> ShareCard:
    """The time per output token large, then the other figures with their intervals."""
    load = about({k: v for k, v in settings.items() if k not in ("model", "device", "tp")})
    if isinstance(answer, InfeasibleAnswer):
        title = f"{settings.get('model', '')} on {settings.get('device', '')}"
        return ShareCard(kicker="Does it fit?", title=title, text=str(answer.infeasible), foot=("orrery", load))
    found = {f.path: f for f in figures(answer)}
    first = found["tpot_s"]
    return ShareCard(
        kicker="Estimate",
        title=headline(answer),
        number=first.text,
        beside=("per output token (TPOT)", _around(first.between)),
        columns=("", "", "80 % interval"),
        rows=tuple((f.label, f.text, f.between) for f in found.values() if f.path in SHOWN and f is not first),
        foot=(f"orrery: {BOUND_BY.get(answer.estimate.bound_by) or answer.estimate.bound_by}", load),
    )


def _around(between: str) -> str:
    return f"80 % interval {between}" if between else ""


def compare_card(a: Side, b: Side, rows: tuple[Compared, ...], summary: str) -> ShareCard:
    """Both designs by name, and the figures that differ with their verdicts."""
    found = [(r.measure.name, r.describe("a"), r.describe("b"), r.verdict) for r in rows if r.measure.more]
    return ShareCard(
        kicker="Compare two designs",
        title=f"{_name(a)} or {_name(b)}?",
        text="" if found else a.error or a.why or b.error or b.why or summary,
        columns=("", "A", "B", "of B"),
        rows=tuple(found),
        foot=("orrery", "likely: their errors leave no doubt at 80 %"),
    )


def _name(side: Side) -> str:
    s = side.settings
    tp = f" x {s['tp']}" if str(s.get("tp", "1")) != "1" else ""
    formats = f", {s['weights']}" if s.get("weights") else ""
    return f"{s.get('model', '?')} on {s.get('device', '?')}{tp}{formats}"
