"""What is understood of papers that are not in the library: judged before the classifier was touched for them."""

import tomllib
from pathlib import Path

import pytest

from orrery.base.sources import read_toml
from orrery.evidence.library import paper_texts
from orrery.evidence.understanding.claims import claims_of
from orrery.evidence.understanding.layer import layer_of
from orrery.evidence.understanding.techniques import OTHER_NAMES, described, likeness
from orrery.evidence.understanding.weights import shipped

JUDGED = tomllib.loads(Path(__file__).with_name("judged_new_papers.toml").read_text(encoding="utf-8"))
PAPERS = JUDGED["paper"]
SETTING, HELD_OUT = PAPERS[::2], PAPERS[1::2]
LATER = tomllib.loads(Path(__file__).with_name("judged_later_papers.toml").read_text(encoding="utf-8"))["paper"]


def test_a_hundred_papers_that_the_library_does_not_have():
    ids = [paper["arxiv"] for paper in (*PAPERS, *LATER)]
    filed = "\n".join(path.read_text(encoding="utf-8") for path in paper_texts())
    assert len(set(ids)) == len(ids) >= 100
    assert not [one for one in ids if f'arxiv = "{one}"' in filed]


def test_judgements_use_names_that_exist():
    names = {technique.name for technique in described()}
    assert {paper["layer"] for paper in (*PAPERS, *LATER)} <= set(shipped().layers)
    assert not [name for paper in (*PAPERS, *LATER) for name in paper["techniques"] if name not in names]
    assert {name for pair in JUDGED["same_mechanism"] for name in pair} <= names
    assert {name for pair in JUDGED["also_right"].items() for name in pair} <= names


def is_layer(paper):
    return layer_of(paper["title"], paper["text"])[0] == paper["layer"]


def right_techniques(paper):
    judged = set(paper["techniques"])
    same = {name for pair in JUDGED["same_mechanism"] if judged & set(pair) for name in pair}
    return judged | same | {other for name, other in JUDGED["also_right"].items() if name in judged}


def is_technique(paper):
    return likeness(paper["title"], paper["text"])[0][0] in right_techniques(paper)


def test_names_of_the_field_are_of_techniques_that_exist():
    assert set(read_toml(OTHER_NAMES)["names"]) <= {technique.name for technique in described()}


def share(right):
    return sum(right) / len(right)


@pytest.mark.parametrize("part", [SETTING, HELD_OUT], ids=["setting", "held out"])
def test_layers_and_techniques_are_right_as_often_as_the_page_says(part):
    assert share([is_layer(paper) for paper in part]) >= LEAST_LAYERS
    assert share([is_technique(paper) for paper in part if paper["techniques"]]) >= LEAST_TECHNIQUES


LEAST_LAYERS, LEAST_TECHNIQUES = 0.86, 0.81
"""Measured: 0.97 and 0.88 of layers, 0.93 and 0.83 of techniques; both fall a little as techniques are added, whose
words are what a text is held against."""


def test_papers_judged_later_are_understood_as_the_page_says():
    """Measured: 0.60 of layers and 17 of 26 techniques; no setting was chosen by them."""
    assert share([is_layer(paper) for paper in LATER]) >= 0.55
    assert share([is_technique(paper) for paper in LATER if paper["techniques"]]) >= 0.6


def test_every_number_that_a_text_claims_is_read():
    for paper in PAPERS:
        read = claims_of(paper["text"])
        for low, high, unit in paper["claims"]:
            ends = (pytest.approx(low), pytest.approx(high), unit)
            assert any((c.low, c.high, c.unit) == ends for c in read), paper["title"]
