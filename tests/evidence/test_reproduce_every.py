"""Every paper that is run again: its predictions are numbers, its misses say why, and the page is made of them."""

import math
import re
from pathlib import Path

import pytest

from orrery.evidence.paper_file import get_paper
from orrery.evidence.reproduce.prediction import predict, reproduced_keys
from orrery.evidence.reproduce.verdict import verdict

HEADINGS = {
    "Serving": ("serving", "fleet"), "Training": ("training",), "Memory": ("memory",), "Resilience": ("resilience",),
    "Numerics": ("numerics", "survey"), "Kernels": ("kernels",), "Search": ("search",),
    "Predictors": ("predictors",),
}  # fmt: skip
KEYS = tuple(key for key in reproduced_keys() if get_paper(key).layer not in HEADINGS["Serving"])
SLOW = (
    "bytescale", "checkfree", "domino", "fp4-design-space", "fp8-and-back", "fp8-vs-bf16-training", "fuyou", "gnnpipe",
    "minifloat-fpga-ptq", "qfx", "realhf", "flashattention-3", "xr-npe", "comet-w4a4kv4",
    "la-dnas", "help-latency-predictor", "ncpp-perfcastdb", "cloudformer",
    "gemm-ada-rf", "meta-learning-acceleration-choice",
)  # fmt: skip
"""Trained, drawn or searched for seconds."""

PAGE = Path(__file__).parent.parent.parent / "docs" / "papers.md"


def check(key: str) -> None:
    """Every prediction is a number for a claim of its paper, once; what misses says why."""
    claims = {c.id: c for c in get_paper(key).claims}
    found = list(predict(get_paper(key)))
    assert len({p.claim for p in found} & claims.keys()) == len(found) > 0
    for p in found:
        assert math.isfinite(p.predicted), p.claim
        assert p.because, p.claim
        assert p.differs or verdict(claims[p.claim], p.predicted) == "repeats", p.claim


def test_all_of_them_are_here() -> None:
    assert len(KEYS) >= 64
    assert set(KEYS) > set(SLOW)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in SLOW])
def test_every_prediction_is_a_number_and_every_miss_says_why(key: str) -> None:
    check(key)


@pytest.mark.slow
@pytest.mark.parametrize("key", SLOW)
def test_slow_predictions_are_numbers_and_every_miss_says_why(key: str) -> None:
    check(key)


def test_the_page_has_every_paper_under_its_layer() -> None:
    text = PAGE.read_text(encoding="utf-8")
    at, seen = "", dict[str, str]()
    for layer, key in re.findall(r"(?m)^(?:## (\w+)|<!-- ([a-z0-9-]+) -->)$", text):
        at = layer or at
        if key and not key.startswith("layer-"):
            seen[key] = at
    assert seen.keys() == set(reproduced_keys())
    assert all(get_paper(key).layer in HEADINGS[heading] for key, heading in seen.items())


def test_the_pages_counts_are_those_of_its_rows() -> None:
    """Claims, repeats, misses and reported only of the summary, counted again in the sections."""
    text = PAGE.read_text(encoding="utf-8")
    _, *parts = re.split(r"(?m)^(?=<!-- [a-z0-9-]+ -->$)", text)
    sections = {part.split()[1]: part for part in parts}
    rows = re.findall(r"(?m)^\| \[([a-z0-9-]+)\]\([^)]*\) \| \w+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text)
    assert {row[0] for row in rows} == set(reproduced_keys())
    for key, *counts in rows:
        claims, repeats, misses, only = map(int, counts)
        assert sections[key].count("| repeats |") == repeats
        assert sections[key].count("| misses |") == misses
        assert claims == repeats + misses + only == len(get_paper(key).claims)
