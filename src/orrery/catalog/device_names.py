"""Spellings of device names by people and tools, and the full variant that a family name stands for."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.sources import read_toml

NAMES = Path(__file__).parent / "facts" / "device_names.toml"

_MAKERS = (
    "nvidia",
    "amd",
    "intel",
    "google",
    "huawei",
    "apple",
    "aws",
    "habana",
    "sambanova",
    "instinct",
    "geforce",
    "tesla",
    "radeon",
    "qualcomm",
)
"""Words that may stand before a device's name and say nothing about which device it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The canonical name that some spelling means, and what had to be taken for granted."""

    name: str
    note: str = ""


def plain(name: str) -> str:
    """A name without case, makers' names and separators: ``plain("NVIDIA H100-SXM5")`` is ``'h100sxm5'``."""
    words = re.findall(r"[a-z0-9]+", name.casefold().replace("+", "plus"))
    while len(words) > 1 and words[0] in _MAKERS:
        del words[0]
    return "".join(words)


@cache
def spellings(canonical: frozenset[str]) -> dict[str, Spelling]:
    """Every known spelling, in plain form. Canonical names win over families, and families over aliases."""
    raw = read_toml(NAMES)
    found: dict[str, Spelling] = {}
    for name, aliases in raw["aliases"].items():
        found |= {plain(alias): Spelling(name=name) for alias in aliases}
    for family in raw["family"]:
        taken = Spelling(name=family["take_as"], note=family["note"])
        found |= {plain(word): taken for word in (family["name"], *family["aliases"])}
    return found | {plain(name): Spelling(name=name) for name in canonical}
