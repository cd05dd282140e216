"""What is made of an abstract: numbers, claims, layer, techniques; each checked against words written for it."""

import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.marks import follow, read_marks
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.paper_file import get_paper, paper_keys
from orrery.evidence.quantities import quantities
from orrery.evidence.understanding import interests, techniques
from orrery.evidence.understanding.claims import claims_of
from orrery.evidence.understanding.layer import layer_of
from orrery.evidence.understanding.techniques import (
    MIN_FRAC,
    Described,
    chance,
    compared,
    likeness,
    techniques_of,
)
from orrery.evidence.understanding.understand import understand, understood
from orrery.evidence.understanding.weights import FILE, shipped
from orrery.evidence.words import READINGS, UNITS

CLAIMED = (
    "Experiments show that our system improves throughput by up to 2.4x compared to vLLM, reduces time to first token "
    "by 35% over the baseline, and cuts energy by at least 12.5 percent."
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2.4x faster", [("ratio", 2.4, 2.4)]),
        ("from 1.5x to 3\u00d7", [("ratio", 1.5, 3.0)]),
        ("1.2-4.48 times", [("ratio", 1.2, 4.48)]),
        ("over 4,000 times faster", [("ratio", 4000.0, 4000.0)]),
        ("a 3-fold gain, twice the rate, by a factor of 8", [("ratio", 3, 3), ("ratio", 2, 2), ("ratio", 8, 8)]),
        ("40%, 52.8 percent", [("frac", 0.4, 0.4), ("frac", 0.528, 0.528)]),
        ("40 and 52 percent", [("frac", 0.4, 0.4), ("frac", 0.52, 0.52)]),
        ("32.09x and 99%, respectively", [("ratio", 32.09, 32.09), ("frac", 0.99, 0.99)]),
        ("2 percentage points", [("points", 0.02, 0.02)]),
        ("from 13B to 175B parameters", [("parameters", 13e9, 175e9)]),
        ("100K to 10M tokens", [("tokens", 1e5, 1e7)]),
        ("6,688 tokens/s per NPU", [("tokens_per_s", 6688.0, 6688.0)]),
        ("512 NVIDIA V100 GPUs", [("devices", 512.0, 512.0)]),
        ("25 petaflops, 191.5 TFLOP/s", [("flops_per_s", 25e15, 25e15), ("flops_per_s", 191.5e12, 191.5e12)]),
        ("80 GB at 3.35 TB/s", [("bytes", 80e9, 80e9), ("bytes_per_s", 3.35e12, 3.35e12)]),
        ("200 Gbps", [("bytes_per_s", 25e9, 25e9)]),
        ("50 ms, 7 us and 2 hours", [("s", 0.05, 0.05), ("s", 7e-6, 7e-6), ("s", 7200.0, 7200.0)]),
        ("2-4 orders of magnitude", [("orders_of_magnitude", 2.0, 4.0)]),
        ("1024x1024 tiles, version 3.5 of A100-80, in 2024", []),
    ],
)
def test_numbers_with_units(text, found):
    assert [(q.unit, pytest.approx(q.low), pytest.approx(q.high)) for q in quantities(text)] == [
        (unit, pytest.approx(low), pytest.approx(high)) for unit, low, high in found
    ]


def test_a_claim_says_what_how_and_against_what():
    throughput, first_token, energy = claims_of(CLAIMED)
    assert (throughput.metric, throughput.high, throughput.reading) == ("throughput_ratio", 2.4, "up to")
    assert throughput.baseline == "vLLM"
    assert (first_token.metric, first_token.low) == ("time_to_first_token_reduction", 0.35)
    assert (energy.metric, energy.low, energy.reading) == ("energy_reduction", 0.125, "at least")
    assert all(c.confidence_frac > 0.8 for c in (throughput, first_token, energy))
    assert "improves throughput" in throughput.text
    assert all(c.unit in UNITS and c.reading in READINGS for c in claims_of(CLAIMED))


@pytest.mark.parametrize("odd", ["1x ", "9", "1,111", "1-", "over 2x than ", "1.5x, and ", "12% points of ", "-", "a "])
def test_no_abstract_takes_long_to_read(odd):
    started = time.process_time()
    claims_of(odd * (20_000 // len(odd)))
    assert time.process_time() - started < 2.0


def test_a_test_bed_is_no_claim():
    assert claims_of("We consider models with 7B parameters in 16 bits.") == ()
    assert claims_of("Nothing is counted here.") == ()


def test_layers_by_words():
    layer, sure = layer_of(
        "Fair queues for answers",
        "We schedule requests of language model serving, with continuous batching, prefill "
        "and decode phases, latency objectives and goodput.",
    )
    assert (layer, sure > 0.5) == ("serving", True)
    layer, sure = layer_of("Four bits", "Weights are quantized to INT4 with scales, post-training quantization.")
    assert (layer, sure > 0.5) == ("numerics", True)
    assert layer_of("", "") == ("", 0.0)
    assert sum(1 for _ in shipped().layers) == 19


def test_weights_are_small_and_hold_no_text():
    assert FILE.stat().st_size < 300_000
    assert all(" " not in word for word in shipped().places)


def test_techniques_by_likeness():
    found = dict(
        techniques_of(
            "Splitting the phases",
            "Prefill and decode run on separate GPUs, and the KV cache is transferred between "
            "them, disaggregating prefill from decoding to raise goodput.",
        )
    )
    assert next(iter(found)) == "disaggregated"
    assert 0.4 < found["disaggregated"] < 1.0
    assert techniques_of("Cooking", "Boil the potatoes in salted water until they are soft.") == ()


def test_a_chance_is_a_logistic_curve_that_ends_where_no_score_was_seen():
    slope, offset, highest = shipped().technique_curve
    assert chance(-offset / slope) == pytest.approx(0.5)
    assert chance((math.log(3.0) - offset) / slope) == pytest.approx(0.75), "odds of three to one"
    assert chance(2.0 * highest) == chance(highest) > 0.5


def test_the_techniques_that_are_named_are_the_likest_few_above_the_least_chance(monkeypatch):
    scores = {"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0}
    monkeypatch.setattr(techniques, "likeness", lambda title, abstract: list(scores.items()))
    monkeypatch.setattr(techniques, "chance", lambda score: score / 10.0)
    assert techniques_of("", "") == (("a", 0.9), ("b", 0.8), ("c", 0.7)), "three at most"
    monkeypatch.setattr(techniques, "chance", lambda score: MIN_FRAC if score == 8.0 else MIN_FRAC * score / 8.0)
    assert techniques_of("", "") == (("a", round(MIN_FRAC * 9 / 8, 3)), ("b", MIN_FRAC)), "the least chance is enough"


def test_a_word_of_a_name_counts_more_than_one_of_the_description_and_that_more_than_one_of_a_paper():
    """The word stands once in a name, in a description, in the title of a paper, and nowhere: 4, 1, a half, 0."""
    paper = replace(get_paper(next(iter(paper_keys()))), title="turbulent", mechanism="", techniques=("c",))
    known = [
        Described(name=name, words=words)
        for name, words in (("turbulent", ""), ("b", "turbulent"), ("c", ""), ("d", ""))
    ]
    found = likeness("turbulent", "", compared(known, [paper]))
    assert [name for name, _ in found] == ["turbulent", "b", "c", "d"]
    scores = [score for _, score in found]
    assert scores[0] > scores[1] > scores[2] > scores[3] == 0.0
    below = dict(likeness("", "turbulent", compared(known, [paper])))
    assert scores == pytest.approx([below[name] for name, _ in found]), "a title's words count like the text's"


def test_what_was_understood_is_kept_until_the_words_change(tmp_path, monkeypatch):
    paper = Entry(id="2611.00001", title="Fair queues", abstract=CLAIMED, source="test")
    with Store(tmp_path / "library.sqlite") as store:
        first = understood(store, [paper])
        assert first == {"2611.00001": understand(paper)}
        monkeypatch.setattr("orrery.evidence.understanding.understand.understand", None)
        assert understood(store, [paper]) == first
        with pytest.raises(TypeError):
            understood(store, [Entry(id="2611.00001", title="Fair queues", abstract="Other.", source="test")])


ROOT = Path(__file__).parents[3]
BESIDE = Path(os.environ.get("ORRERY_DATA", ROOT.parent / "shared" / "data")).parent
PAGES = sorted({path.parent for path in BESIDE.glob("*/*.txt")})
LABELS = [path for path in BESIDE.glob("*.json") if path.read_text(encoding="utf-8")[:400].count('"title"')]


@pytest.mark.slow
@pytest.mark.skipif(not (PAGES and LABELS), reason="no pages beside the repository (set ORRERY_DATA)")
def test_the_documentation_says_what_is_measured():
    command = [sys.executable, "tools/understanding.py", PAGES[0], LABELS[0], "--no-write"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    measured = done.stdout.split("**Techniques**")[0]  # the rest changes with every paper file
    assert measured.strip() in (ROOT / "docs" / "new-papers.md").read_text(encoding="utf-8")


def test_rows_of_digits_are_no_claims():
    abstract = f"It improves throughput by up to {'9' * 400}x over vLLM, and latency by 2.5x."
    assert [c.high for c in claims_of(abstract)] == [2.5]


def test_likeness_is_kept_until_marks_or_papers_change(tmp_path, monkeypatch):
    day = date(2026, 11, 22)
    papers = [
        Entry(id=f"2611.0000{i}", title=t, abstract=f"About {t} in depth.", source="t", published=day)
        for i, t in enumerate(("caches of keys", "meshes of optics", "drives and caches"))
    ]
    times = []
    compared = interests._compared
    monkeypatch.setattr(interests, "_compared", lambda *args: times.append(1) or compared(*args))
    with Store(tmp_path / "library.sqlite") as store:
        save_entries(store, papers, day)
        follow(store, [("words", "caches")])

        def strongest():
            met = interests.Interests(store, read_marks(store), papers, understood(store, papers))
            return [met.strongest(i) for i in range(3)]

        first = strongest()
        assert [value >= 0.1 for value, _ in first] == [True, False, True]
        assert first[0][1].startswith("like 'caches', which you follow")
        assert (strongest(), len(times)) == (first, 1)
        follow(store, [("words", "optics")])
        assert strongest()[1][0] > 0.1
        assert len(times) == 2
