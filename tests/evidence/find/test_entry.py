"""The entry of a paper as data, its citation, and documents made of files and of fetched papers."""

import json
from dataclasses import replace
from datetime import date

import pytest

from orrery.evidence.feed.entry import Classification, Entry, NumericClaim
from orrery.evidence.find.citation import bibtex
from orrery.evidence.find.entry import entry_of
from orrery.evidence.find.library_cache import library
from orrery.evidence.find.made import document_of_entry, document_of_paper
from orrery.evidence.judge.scorecard import Scorecard, Scored
from orrery.evidence.paper_file import get_paper

CARD = Scorecard(
    papers={
        "two-pass-softmax": {"speedup-avx2": Scored(predicted=0.2, ratio=1.11, verdict="reproduced", because="so")}
    },
    curves={},
)


@pytest.fixture(scope="module")
def entry(finder):
    return entry_of(get_paper("two-pass-softmax"), finder, card=CARD)


def test_it_says_what_its_techniques_gain_and_cost(entry):
    two_pass = next(t for t in entry.techniques if t.name == "two-pass")
    assert two_pass.gains
    assert two_pass.costs
    assert two_pass.extension_point == "numerics.softmax"


def test_a_mechanism_without_a_technique_file_is_named_apart(finder):
    found = entry_of(get_paper("distserve"), has_curve=False, card=CARD)
    named = {t.name for t in found.techniques}
    assert set(found.other_mechanisms) == set(get_paper("distserve").techniques) - named
    assert found.no_curve == "left out, as asked"
    assert found.related == ()


def test_claims_stand_beside_what_came_out(entry):
    by_id = {judged.claim.id: judged for judged in entry.claims}
    assert by_id["speedup-avx2"].verdict == "reproduced"
    assert by_id["speedup-avx2"].predicted == 0.2
    assert by_id["speedup-avx512"].verdict == "not modeled"


def test_the_curve_is_read(entry):
    assert entry.curve is not None
    assert len(entry.curve.points) >= 5
    assert entry.curve.sentence.startswith("Always helps")
    assert entry.curve.shape == "falls"


def test_related_papers_say_why(entry):
    assert entry.related
    assert all(other.because for other in entry.related)
    assert entry.key not in [other.key for other in entry.related]


def test_a_paper_that_is_not_run_again_says_so():
    paper = replace(get_paper("two-pass-softmax"), missing="a processor that nobody describes", sweep=None)
    found = entry_of(paper, card=CARD)
    assert found.missing == "a processor that nobody describes"
    assert found.curve is None
    assert found.no_curve == "the paper is not modeled"


def test_it_becomes_json(entry):
    found = json.loads(json.dumps(entry.to_json(), allow_nan=False))
    assert found["links"]["paper"] == "https://arxiv.org/abs/2001.04438"
    assert found["claims"][0]["reported"] == 0.28
    assert found["curve"]["points"][0]["predicted"] > 0
    assert set(found["unstated"]) == set(get_paper("two-pass-softmax").unstated)


def test_a_document_of_a_paper_carries_its_words():
    found = document_of_paper(get_paper("splitwise"))
    assert {"h100-sxm", "a100-sxm-80gb"} <= set(found.devices)
    assert found.source == "library"
    assert any("against" in claim for claim in found.claims)
    assert len(set(found.metrics)) == len(found.metrics)


def test_a_document_of_a_fetched_paper_carries_what_is_understood():
    claim = NumericClaim(
        metric="throughput_ratio", low=2.0, high=2.0, unit="ratio", reading="up to", text="2x", confidence_frac=0.9
    )
    entry = Entry(id="2501.00001", title="T", abstract="A", source="arxiv", published=date(2025, 1, 2))
    understood = Classification(layer="moe", techniques=(("expert-placement", 0.7),), claims=(claim,))
    found = document_of_entry(entry, understood)
    assert (found.key, found.arxiv, found.year, found.layer) == ("2501.00001", "2501.00001", 2025, "moe")
    assert found.claims == ("throughput ratio up to 2",)
    assert found.techniques == ("expert-placement",)
    assert document_of_entry(replace(entry, id="title:abc", published=None), understood).arxiv == ""


def test_a_citation_keeps_capitals_and_escapes_signs():
    cited = bibtex("a b/c", "50% of {GPU}s & more_", year=None, authors=("A. Lee", "B. Ü"))
    assert cited == ("@misc{a-b-c,\n  title = {{50\\% of \\{GPU\\}s \\& more\\_}},\n  author = {A. Lee and B. Ü},\n}")


def test_the_shelf_is_kept_and_made_anew_when_a_file_changes(tmp_path, monkeypatch):
    papers = tmp_path / "papers"
    papers.mkdir()
    monkeypatch.setattr("orrery.evidence.find.library_cache.paper_texts", lambda: tuple(papers.glob("*.toml")))
    monkeypatch.setattr("orrery.evidence.find.library_cache.own_papers_folder", lambda: tmp_path / "own")
    text = (
        'title = "{}"\nyear = 2024\nlayer = "moe"\nkind = "system"\nfit = "core"\nmechanism = "M."\ntechniques = [""]\n'
    )
    retained = tmp_path / "deep" / "kept.json"
    (papers / "one.toml").write_text(text.format("One"))
    first = library(retained)
    assert [document.title for document in first] == ["One"]
    assert library(retained) == first
    (papers / "one.toml").write_text(text.format("Another"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.toml").write_text(text.format("Mine"))
    assert {document.title for document in library(retained)} == {"Another", "Mine"}
    retained.write_text("[]")
    assert len(library(retained)) == 2
    retained.unlink()
    retained.mkdir()
    assert len(library(retained)) == 2
