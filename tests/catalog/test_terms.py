"""Words of the field: each once, each with a sentence, the same in the docs, and metrics that the docs define."""

from itertools import chain
from pathlib import Path

import pytest

from orrery.base.errors import UnknownName
from orrery.catalog.terms import get_term, terms

METRICS = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")


def test_a_spelling_stands_for_one_word():
    spellings = [s.casefold() for s in chain.from_iterable(t.spellings for t in terms())]
    assert len(spellings) == len(set(spellings)) > 50


def test_the_page_of_metrics_has_every_word_as_it_is():
    missing = [t.key for t in terms() if f"| {', '.join(t.spellings)} | {t.definition} |" not in METRICS]
    assert missing == []


def test_a_word_that_is_measured_names_a_metric_of_the_page():
    assert [t.key for t in terms() if t.metric and f"`{t.metric}`" not in METRICS] == []
    assert get_term("ttft").metric == "ttft_s"


def test_a_word_is_found_by_any_spelling():
    assert get_term("time to FIRST token") is get_term("ttft") is get_term("TTFT")
    with pytest.raises(UnknownName, match="TPOT"):
        get_term("tpo")
