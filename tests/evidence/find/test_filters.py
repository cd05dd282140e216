"""Lists are narrowed by what papers carry; a word that no paper carries is refused."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.find.document import Document
from orrery.evidence.find.filters import Filters, select

SHELF = (
    Document(
        key="a",
        title="A",
        text="",
        layer="serving",
        kind="system",
        fit="core",
        year=2021,
        devices=("a100-sxm-80gb",),
        metrics=("throughput_ratio",),
        techniques=("chunked-prefill",),
    ),
    Document(
        key="b",
        title="B",
        text="",
        layer="moe",
        kind="system",
        fit="adjacent",
        year=2024,
        devices=("a100-pcie-80gb", "h100-sxm"),
        metrics=("speedup", "latency_reduction"),
    ),
    Document(key="c", title="C", text="", layer="moe", kind="survey", fit="catalogue"),
)


def keys(**filters):
    return "".join(document.key for document in select(SHELF, Filters(**filters)))


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, "abc"),
        ({"layer": "moe"}, "bc"),
        ({"layer": "MoE, serving"}, "abc"),
        ({"device": "a100"}, "ab"),
        ({"device": "a100-pcie"}, "b"),
        ({"device": "A100 SXM 80GB"}, "a"),
        ({"technique": "chunked-prefill"}, "a"),
        ({"metric": "throughput_ratio"}, "a"),
        ({"metric": "throughput-ratio,speedup"}, "ab"),
        ({"kind": "system", "fit": "core"}, "a"),
        ({"layer": "moe", "fit": "core"}, ""),
        ({"year": "2024"}, "b"),
        ({"year": "2020..2023"}, "a"),
        ({"year": "2022.."}, "b"),
        ({"year": "..2023"}, "a"),
        ({"year": " 2021 .. 2024 "}, "ab"),
    ],
)
def test_what_is_left(filters, left):
    assert keys(**filters) == left


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"layer": "servin"}, "did you mean 'serving'"),
        ({"device": "a10"}, "no paper of device 'a10'"),
        ({"metric": "zzz"}, "known: latency_reduction, speedup, throughput_ratio"),
        ({"kind": "sytem"}, "did you mean 'system'"),
        ({"technique": ","}, "no paper of technique"),
        ({"year": "soon"}, "is no year"),
        ({"year": ".."}, "is no year"),
        ({"year": "2020 2021"}, "is no year"),
        ({"year": "2024..2020"}, "write 2020..2024"),
        ({"verdict": "wrong"}, "none of reproduced, not reproduced, none"),
    ],
)
def test_what_nobody_carries_is_refused(filters, message):
    with pytest.raises(ScenarioError, match=message):
        keys(**filters)


def test_papers_by_verdict(monkeypatch):
    from orrery.evidence.judge.scorecard import Scorecard, Scored

    def line(word):
        return Scored(predicted=1.0, ratio=1.0, verdict=word, because="so")

    card = Scorecard(
        papers={"a": {"x": line("reproduced"), "y": line("not reproduced")}, "b": {"x": line("not reproduced")}},
        curves={},
    )
    monkeypatch.setattr("orrery.evidence.judge.scorecard.read_scorecard", lambda: card)
    assert [keys(verdict=word) for word in ("reproduced", "not reproduced", "none")] == ["a", "ab", "c"]
