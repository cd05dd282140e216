"""One door for every kind of file: the suffix says which."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.cli.simulate_report.page import report_html
from orrery.cli.simulate_report.parquet import parquet_bytes
from orrery.cli.simulate_report.rows import csv_text, request_columns
from orrery.reports.perfetto import trace_events
from orrery.serving.metrics import details
from orrery.serving.simulation.result import Simulated

SUFFIXES = (".parquet", ".csv", ".trace.json", ".perfetto.json", ".json", ".html")
"""Suffixes of the formats a result can be written in; the longer ones are tried first."""


def write_result(simulated: Simulated, answer: Mapping[str, Any], path: Path) -> None:
    """Write the run to ``path``, whole or not at all.

    ``.parquet``, ``.csv``: one row a request. ``.json``: ``answer`` and a value a request. ``.html``: the report.
    ``.trace.json``, ``.perfetto.json``: the logged steps, for ui.perfetto.dev or chrome://tracing.
    """
    write_atomically(path, _content(simulated, answer, path))


def _content(simulated: Simulated, answer: Mapping[str, Any], path: Path) -> str | bytes:
    suffix = check_suffix(path)
    if suffix == ".parquet":
        return parquet_bytes(request_columns(simulated))
    if suffix == ".csv":
        return csv_text(request_columns(simulated))
    if suffix in (".trace.json", ".perfetto.json"):
        return json.dumps(trace_events(simulated), allow_nan=False)
    if suffix == ".json":
        return json.dumps({**answer, **details(simulated)}, allow_nan=False)
    return report_html([dict(answer)])


def check_suffix(path: Path) -> str:
    """The ending of ``path``, before anything is worked out for it; ScenarioError where it says nothing."""
    name = path.name.casefold()
    if suffix := next((s for s in SUFFIXES if name.endswith(s)), ""):
        return suffix
    raise ScenarioError(f"out: {path.name!r} does not say what to write; end it in one of {', '.join(SUFFIXES)}.")
