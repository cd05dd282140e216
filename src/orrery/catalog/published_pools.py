"""Servers of separate prefill and decode workers as public scripts start them: ``facts/published_pools.toml``."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.sources import Basis, Fact, Source, cited, read_toml

FILE = Path(__file__).parent / "facts" / "published_pools.toml"

ASKED = (
    "engine",
    "weights",
    "device",
    "input_tokens",
    "output_tokens",
    "prefill_workers",
    "decode_workers",
    "decode_tp",
    "decode_dp",
)
"""Columns that must be equal; lengths are nominal ones."""

KEYS = frozenset({"models", "concurrency", "max_num_seqs", "source", "at", *ASKED})


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    return tuple(
        {**entry, "source": cited("published_pools.toml: an entry", entry, KEYS, sources)} for entry in raw["pools"]
    )


def most_decoding(model: str, concurrency: int, settings: Mapping[str, str | int]) -> Fact | None:
    """The most sequences that scripts let each attention rank of a decode worker hold, at so many requests in flight;
    None where no script is known. ``settings``: the values of ``ASKED``."""
    for entry in _entries():
        if (
            concurrency in entry["concurrency"]
            and fnmatchcase(model.casefold(), entry["models"])
            and all(entry[name] == settings[name] for name in ASKED)
        ):
            value = entry["max_num_seqs"]
            return Fact(name="max_num_seqs", value=value, basis=Basis.STATED, source=entry["source"], at=entry["at"])
    return None
