"""Counts of parameters against what is published: what the hub counts in the weights, what publishers say is active."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from battery import over

from orrery.catalog.models import get_model, model_names
from orrery.models.model import Model

TABLE = Path(__file__).with_name("published_counts.toml")
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads(TABLE.read_text())["models"]
COUNTED = sorted(name for name, entry in PUBLISHED.items() if "total" in entry)
ACTIVE = sorted(name for name, entry in PUBLISHED.items() if "active" in entry)
UNITS = {"M": 1e6, "B": 1e9}
ROUNDING = 0.02


def _more(model: Model, what: str) -> int:
    """Weights of a checkpoint that are not the model's own."""
    table = model.vocab_size * model.hidden_size
    return {
        "drafts": model.draft_parameters,
        "embedding and head of drafts": 2 * table,
        "tied head": table,  # stored although it is the embedding
    }[what]


@over(COUNTED)
def test_totals_are_those_that_the_hub_counts(name: str) -> None:
    """Scales of FP8 blocks and correction biases of routers are in the hub's count: a thousandth at most."""
    model, entry = get_model(name), PUBLISHED[name]
    counted = model.num_parameters + sum(_more(model, what) for what in entry.get("holds", ()))
    assert counted == pytest.approx(entry["total"], rel=1e-3)


def _stated(text: str) -> tuple[float, float]:
    """(value, half a unit of its last digit)."""
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?([MB])", text)
    assert found is not None, text
    digits, unit = len(found[2] or ""), UNITS[found[3]]
    if not digits and unit == UNITS["M"]:
        return float(found[1]) * unit, 50e6  # hundreds of millions
    return float(text[:-1]) * unit, unit / 2 / 10**digits


@over(ACTIVE)
def test_active_parameters_are_those_published(name: str) -> None:
    """Some publishers count the embedding with what a token passes through, some not even the head."""
    model = get_model(name)
    stated, half = _stated(PUBLISHED[name]["active"])
    head = model.head.num_parameters if model.head else 0
    least, most = model.num_active_parameters - head, model.num_active_parameters + model.embedding_parameters
    assert least * (1 - ROUNDING) - half <= stated <= most * (1 + ROUNDING) + half


def test_a_published_figure_is_read_with_half_a_unit_of_its_last_digit() -> None:
    assert _stated("3.3B") == pytest.approx((3.3e9, 0.05e9))
    assert _stated("37B") == pytest.approx((37e9, 0.5e9))


def test_every_mixture_states_what_is_active() -> None:
    assert {n for n in model_names() if any(b.experts for b in get_model(n).blocks)} == set(ACTIVE)
