"""Papers on training, memory and resilience, re-run: every claim by default, but the slow ones one claim each."""

import math
import re
from pathlib import Path

import pytest

from orrery.evidence.paper_file import Claim, get_paper
from orrery.evidence.reproduce import checkfree, domino, fuyou, gnnpipe, realhf
from orrery.evidence.reproduce.prediction import predict, reproduced_keys
from orrery.evidence.reproduce.verdict import verdict
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import space_of
from orrery.planner.rlhf.techniques import symmetric, zero3

HEADINGS = {
    "Serving": ("serving", "fleet"), "Training": ("training",), "Memory": ("memory",), "Resilience": ("resilience",),
}  # fmt: skip
KEYS = tuple(key for key in reproduced_keys() if get_paper(key).layer not in HEADINGS["Serving"])
SLOW = ("bytescale", "checkfree", "domino", "fuyou", "gnnpipe", "realhf")
"""Trained, drawn or searched for seconds; ByteScale's shorter test is with the sequences."""

PAGE = Path(__file__).parent.parent.parent / "docs" / "papers.md"


def claim_of(key: str, name: str) -> Claim:
    return next(c for c in get_paper(key).claims if c.id == name)


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
    assert len(KEYS) == 27
    assert set(KEYS) > set(SLOW)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in SLOW])
def test_every_prediction_is_a_number_and_every_miss_says_why(key: str) -> None:
    check(key)


@pytest.mark.slow
@pytest.mark.parametrize("key", SLOW)
def test_slow_predictions_are_numbers_and_every_miss_says_why(key: str) -> None:
    check(key)


def test_a_batch_leaves_the_activations_that_were_reported() -> None:
    claim = claim_of("fuyou", "activations-13b")
    made = fuyou.work(claim.setup)
    assert verdict(claim, made.num_layers * made.activation_bytes) == "repeats"


def test_a_stage_computed_twice_takes_a_third_longer() -> None:
    """One more forward pass beside one forward and two backward."""
    assert checkfree.answer(claim_of("checkfree", "step-of-redundant")) == pytest.approx(4 / 3)
    claim = claim_of("checkfree", "rollback-10")
    assert verdict(claim, checkfree.answer(claim)) == "repeats"


def test_slices_hide_sums_of_a_small_case() -> None:
    setup = get_paper("domino").setups["dgx-h100"]
    base, cut = (
        domino.trained(job, domino.TrainingLayout(tp=8, micro_batch=16, is_sequence_parallel=False)).step_s
        for case in [domino.Case(model="gpt3-6.7b", tp=8, seq_len=1024, micro_batch=16)]
        for job in (domino.job_of(setup, case), domino.sliced(setup, case, 2, 1))
    )
    assert 1.0 < base / cut < 1.3


def test_parts_exchange_in_every_layer() -> None:
    claim = claim_of("gnnpipe", "volume-factor")
    assert gnnpipe.reduction(claim.setup, 32) / gnnpipe.reduction(claim.setup, 8) == pytest.approx(4.0)


def test_plans_by_hand_differ_at_the_smallest_size() -> None:
    space = space_of(realhf.job(get_paper("realhf").setups["four-7b"]))
    plans = (symmetric.rule(space, symmetric.TECHNIQUE.knobs()), zero3.rule(space, zero3.ShardedKnobs()))
    times = [plan.time_s for plan in plans if isinstance(plan, Plan)]
    assert len(times) == 2
    assert times[0] < times[1]


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
