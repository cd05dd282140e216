"""Two designs side by side."""

import asyncio
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import ScenarioError
from orrery.web.both_widths import at_both_widths
from orrery.web.compare.figures import Compared, compared
from orrery.web.compare.pictures import DRAWINGS, TITLES, drawing
from orrery.web.compare.sides import Side, differences, settings_of_both, side_of
from orrery.web.design.inputs import ESTIMATED
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.forms import fields, others, suggestions
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.render import page

MENU = (20, "/compare", "Compare")

OPEN = ("model", "device", "tp", "weights", "input_tokens", "output_tokens", "concurrency")
"""Fields that stand open; the others are folded away until one has a value."""

FIELDS = (
    "model",
    "device",
    "tp",
    "pp",
    "dp",
    "ep",
    "weights",
    "activations",
    "kv",
    "engine",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "rate",
    "usd_per_hour",
    "max_num_seqs",
)

HEADER = ("figure", "unit", "a", "a_low_80", "a_high_80", "b", "b_low_80", "b_high_80", "ratio", "verdict")


async def compare(request: Request) -> Response:
    """The page, its part, or a file."""
    both = settings_of_both(request.query_params)
    place = request.app.state.place
    a, b = await asyncio.to_thread(lambda: tuple(side_of(x, s, place) for x, s in zip("AB", both, strict=True)))
    rows = compared(a, b)
    if kind := request.query_params.get("format"):
        return _file(kind, request.query_params.get("show", ""), (a, b), rows)
    query = f"{a.prefixed()}&{b.prefixed()}"
    drawn = {name: text for name in DRAWINGS if (text := at_both_widths(partial(drawing, name, a, b)))}
    answer = page(
        request,
        "compare.html",
        sides=(a, b),
        rows=rows,
        pictures=drawn,
        titles=TITLES,
        lead=lead(rows),
        differences=differences(a, b),
        query=query,
        swapped=f"{b.prefixed('a')}&{a.prefixed('b')}",
        copied=f"{a.prefixed()}&{a.prefixed('b')}",
        suggestions=suggestions(place.uploads),
        forms=[_form(a), _form(b)],
        summary=summary(rows),
    )
    answer.headers["hx-push-url"] = f"/compare?{query}"
    return answer


def _form(side: Side) -> dict[str, Any]:
    prefix = f"{side.letter.lower()}."
    every = fields(side.settings, FIELDS, prefix)
    shown = [f for f in every if f.name.removeprefix(prefix) in OPEN]
    folded = [f for f in every if f not in shown]
    hidden = others(side.settings, FIELDS, prefix)
    return {"side": side, "open": shown, "folded": folded, "hidden": hidden}


LEADS = ("tpot_s", "output_tokens_per_s", "usd_per_million_tokens", "ttft_s")
"""Figures that stand first."""


def lead(rows: tuple[Compared, ...]) -> tuple[Compared, ...]:
    """The figures that stand first, as far as both have them."""
    by_path = {row.measure.path: row for row in rows if row.ratio is not None}
    return tuple(by_path[path] for path in LEADS if path in by_path)


def summary(rows: tuple[Compared, ...]) -> str:
    """The significant differences, in a line."""
    sure = [f"{row.measure.name}: {row.verdict}, {row.change}" for row in rows if row.is_sure]
    return ". ".join(sure) + "." if sure else "No difference is larger than what is unsure."


def _file(kind: str, show: str, sides: tuple[Side, Side], rows: tuple[Compared, ...]) -> Response:
    if kind == "csv":
        return as_csv(
            "compare",
            HEADER,
            [
                (
                    r.measure.path,
                    r.measure.unit,
                    r.a,
                    *(r.a_80 or (None, None)),
                    r.b,
                    *(r.b_80 or (None, None)),
                    r.ratio,
                    r.verdict,
                )
                for r in rows
            ],
        )
    if kind == "json":
        return as_json(
            "compare",
            {side.letter.lower(): _describe(side) for side in sides}
            | {
                "differences": differences(*sides),
                "figures": {r.measure.path: {"ratio": r.ratio, "verdict": r.verdict} for r in rows},
            },
        )
    if kind == "svg" and show in DRAWINGS and (text := drawing(show, *sides)):
        return as_svg(f"compare-{show}", text)
    raise ScenarioError(
        f"format: got {kind[:20]!r}, show {show[:40]!r}; write csv, json, or svg and show one of {', '.join(DRAWINGS)}."
    )


def _describe(side: Side) -> dict[str, Any]:
    answer = side.answer.to_json() if side.answer else {"why": side.why or side.error}
    return answer | {"settings": side.settings}


PARAMETERS = Parameters(
    words={"format": ("csv", "json", "svg"), "show": tuple(DRAWINGS)},
    settings=ESTIMATED,
    prefixes=("", "a.", "b."),
)

ROUTES = (PageRoute("/compare", compare, PARAMETERS),)
