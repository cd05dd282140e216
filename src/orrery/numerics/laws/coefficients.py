"""Coefficients of a law as cited facts: one TOML file a law in ``facts``.

A coefficient's unit is whatever makes the law come out in nats, so it is written as text; shares and counts as numbers.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from orrery.base.sources import Fact, read_facts

FOLDER = Path(__file__).parent / "facts"


@cache
def facts_of(law: str) -> Mapping[str, Fact]:
    """Every line of a law's file, by name."""
    return read_facts(FOLDER / f"{law}.toml")[0]


@cache
def coefficients(law: str) -> Mapping[str, float]:
    """The numbers among them; ``form``, which is the formula, is none."""
    return {name: float(fact.value) for name, fact in facts_of(law).items() if name != "form"}
