"""The report: one HTML file that needs nothing else, neither network nor server.

Its parts lie in ``templates``. The results are embedded as JSON in which no ``<`` is left, and the page only ever sets
text.
"""

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.serving.metrics.distribution import CURVE_SHARES
from orrery.serving.requests import Floats

PER_REQUEST = frozenset(
    {
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "start_times",
        "latencies",
        "queue_times",
        "generated_texts",
        "errors",
    }
)
"""Columns with a value a request: drawn as curves, never embedded."""

MAX_POINTS = 2000
"""Largest number of points of one curve; longer ones are thinned evenly."""


def report_html(results: Sequence[Mapping[str, Any]]) -> str:
    """The page about one result, or about the results of a sweep; each as ``result_json`` makes it, or as vLLM does.

    A mapping under ``settings`` and a list of ``notes`` are shown when they are there.
    """
    if not results:
        raise ScenarioError("a report needs at least one result; pass the object that `orrery simulate --json` prints")
    parts = {
        "TITLE": html.escape(_title(results)),
        "CSS": _template("report.css"),
        "JS": _script(),
        "DATA": _embedded([_slim(result) for result in results]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _template("report.html"))


def _title(results: Sequence[Mapping[str, Any]]) -> str:
    models = dict.fromkeys(str(result.get("model_id") or "a model") for result in results)
    many = f"{len(results)} simulated runs of " if len(results) > 1 else "Serving "
    return many + ", ".join(models)


def _template(name: str) -> str:
    return files("orrery.cli.simulate_report").joinpath("templates", name).read_text(encoding="utf-8")


def _script() -> str:
    return _template("charts.js") + _template("report.js")


def _embedded(value: Any) -> str:
    """JSON that can stand inside a script element: no ``<`` and no line separator of JavaScript's own."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _slim(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without its columns, with curves of at most ``MAX_POINTS`` points."""
    retained = {name: _thinned(value) for name, value in result.items() if name not in PER_REQUEST}
    if "latency_curves" not in retained and (curves := _curves(result)):
        retained["latency_curves"] = curves
    return retained


def _thinned(value: Any) -> Any:
    """``value`` with shorter lists, and null for what is no number."""
    if isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        return {str(key): _thinned(inner) for key, inner in named.items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        step = math.ceil(len(items) / MAX_POINTS) or 1
        return [_thinned(item) for item in items[::step]]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _curves(result: Mapping[str, Any]) -> dict[str, list[float]] | None:
    """Curves from a detailed result that has none, such as vLLM's own: requests without an error count."""
    try:
        ttft_s, tokens = _column(result, "ttfts"), _column(result, "output_lens")
    except (KeyError, TypeError, ValueError):
        return None
    is_done = tokens > 0
    if ttft_s.shape != tokens.shape or not is_done.any():
        return None
    curves = {"share": CURVE_SHARES.tolist(), "ttft_ms": _quantiles_ms(ttft_s[is_done])}
    latency_s = _column(result, "latencies") if "latencies" in result else None
    if latency_s is not None and latency_s.shape == tokens.shape:
        curves["e2el_ms"] = _quantiles_ms(latency_s[is_done])
        long = tokens > 1
        if long.any():
            curves["tpot_ms"] = _quantiles_ms((latency_s - ttft_s)[long] / (tokens[long] - 1))
    return curves


def _column(result: Mapping[str, Any], name: str) -> Floats:
    return np.asarray(result[name], dtype=np.float64)


def _quantiles_ms(values_s: Floats) -> list[float]:
    quantiles: list[float] = (np.quantile(values_s, CURVE_SHARES) * 1e3).tolist()
    return quantiles
