"""Every fitted spread is in order and holds the answer that it surrounds, or is at least honest about its bias."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "src" / "orrery" / "catalog" / "facts" / "calibrations").glob("*.toml"))
BIAS = 1.35
"""A rule may be known to lean, but an 80 % interval that ends this far on one side of the answer is no interval."""


def spreads(node, where=""):
    """(where, spread) of every table that holds the four quantiles."""
    if isinstance(node, dict):
        if "low_80" in node:
            yield where, node
            return
        words = (node.get(k) for k in ("device", "generation", "name", "op", "format", "engine"))
        label = "/".join(w for w in words if isinstance(w, str))
        for key, value in node.items():
            yield from spreads(value, f"{where} {label} {key}".strip())
    elif isinstance(node, list):
        for value in node:
            yield from spreads(value, where)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_spreads_are_in_order_and_near_the_answer(path):
    found = list(spreads(tomllib.loads(path.read_text(encoding="utf-8"))))
    assert found
    wrong = [
        f"{where}: {s}"
        for where, s in found
        if not 0 < s["low_95"] <= s["low_80"] <= s["high_80"] <= s["high_95"]
        or s["low_80"] > BIAS
        or s["high_80"] < 1 / BIAS
    ]
    assert not wrong, "\n".join(wrong)
