"""Downloads of a page: an attachment with a harmless name, for programs and for spreadsheets.

A spreadsheet takes a text cell that begins like a formula for one, and formulas can send data away; such cells get an
apostrophe in front, which spreadsheets do not show. https://owasp.org/www-community/attacks/CSV_Injection
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.responses import Response

from orrery.scenario.answer import to_json

Cell = str | int | float | bool | None

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First letters of a text cell that a spreadsheet may act on."""

MAX_LETTERS = 80
"""Maximum letters of a file's name, without its ending."""

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def as_json(name: str, data: Any) -> Response:
    """Plain data or dataclasses, as ``--json`` writes them; what is not finite is ``null``."""
    text = json.dumps(to_json(data), ensure_ascii=False, allow_nan=False, indent=1)
    return _attached(name, "json", "application/json", text + "\n")


def as_csv(name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Response:
    """A table; numbers stay numbers, blank where there is none."""
    out = io.StringIO(newline="")
    write = csv.writer(out)
    write.writerow([_cell(word) for word in header])
    write.writerows([_cell(cell) for cell in row] for row in rows)
    return _attached(name, "csv", "text/csv", out.getvalue())


def as_svg(name: str, text: str) -> Response:
    """One of our own drawings."""
    return _attached(name, "svg", "image/svg+xml", text)


def as_html(name: str, text: str) -> Response:
    """A page that stands alone, such as a report."""
    return _attached(name, "html", "text/html", text)


def file_name(name: str, ending: str) -> str:
    """A name that is one on every system: no folders, no hidden files, nothing that a header could be bent by."""
    stem = _OTHER.sub("-", name).strip(".-_")[:MAX_LETTERS].rstrip(".-_")
    return f"{stem or 'orrery'}.{ending}"


def _cell(value: Cell) -> str | int | float:
    if isinstance(value, str):
        text = value.replace("\0", "")
        return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or not math.isfinite(value) else value


def _attached(name: str, ending: str, kind: str, text: str) -> Response:
    disposition = f'attachment; filename="{file_name(name, ending)}"'
    headers = {"content-disposition": disposition, "cache-control": "no-store"}
    return Response(text, media_type=kind, headers=headers)
