"""Which campaign a measured row belongs to: one source's rows in one setting.

Rows of a campaign share what no model of a device knows: who measured, with which script, on which machines. So a
prediction is only tested by a campaign whose rows had no part in its constants. A column ``campaign`` names it; without
one it is

    who published (``source`` up to its commit, path or remark), how the load is made (``mode``, and whether prompts and
    outputs have workers of their own), the engine, the release that last changed its defaults, and the generation of
    the device

of a serving run: one source's runs of another engine, of an engine that has changed since, or on another generation
are another campaign; another model or another page of the same source is not. Rows of other kinds are told apart by
who published, the framework, library or engine, and the device.
"""

import re

from orrery.catalog.devices import get_device
from orrery.catalog.engines import era_of
from orrery.evidence.row import Row
from orrery.evidence.serving_row import engine_of, has_pools, version_of

COLUMN = "campaign"
POOLS = "separate pools"
UNKNOWN_SOURCE = "unknown source"


def campaign_of(row: Row) -> str:
    """The campaign's name: the column's word, else what the row says of source, load, engine and device."""
    if stated := row.word(COLUMN):
        return stated
    setting = _serving(row) if row.word("kind") == "serving" else _other(row)
    return f"{source_of(row.word('source'))}: {setting}"


def _serving(row: Row) -> str:
    quiet = Row(cells=row.cells)  # what is assumed here is not assumed of the prediction
    engine = engine_of(quiet)
    load = f"{row.word('mode')}, {POOLS}" if has_pools(row) else row.word("mode")
    era = era_of(engine, version_of(quiet, engine))
    generation = get_device(row.word("device")).generation
    return f"{load}, {engine} {era}, {generation}"


def _other(row: Row) -> str:
    program = row.word("framework") or row.word("library") or row.word("engine")
    return ", ".join(word for word in (program, row.word("device")) if word)


def source_of(words: str) -> str:
    """The publisher: ``NVIDIA/TensorRT-LLM@258c:docs/perf.md`` and ``NVIDIA/TensorRT-LLM (page)`` are one source."""
    return re.split(r"[@:(]", words, maxsplit=1)[0].strip() or UNKNOWN_SOURCE
