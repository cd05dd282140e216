"""Papers on training and memory: single mechanisms of the longer ones."""

import pytest

from orrery.evidence.paper_file import Claim, get_paper
from orrery.evidence.verdict import verdict
from orrery_papers.checkfree import predict as checkfree
from orrery_papers.domino import predict as domino
from orrery_papers.fuyou import predict as fuyou
from orrery_papers.gnnpipe import predict as gnnpipe
from orrery_papers.realhf import predict as realhf


def claim_of(key: str, name: str) -> Claim:
    return next(c for c in get_paper(key).claims if c.id == name)


def test_a_batch_leaves_the_activations_that_were_reported() -> None:
    claim = claim_of("fuyou", "activations-13b")
    _, step = fuyou.largest_batch(claim.setup, fuyou.THEIRS)
    assert verdict(claim, step.activation_bytes) == "reproduced"


def test_a_stage_computed_twice_takes_a_third_longer() -> None:
    """One more forward pass beside one forward and two backward."""
    assert checkfree.answer(claim_of("checkfree", "step-of-redundant")) == pytest.approx(4 / 3)
    claim = claim_of("checkfree", "rollback-10")
    assert verdict(claim, checkfree.answer(claim)) == "reproduced"


def test_slices_hide_sums_of_a_small_case() -> None:
    setup = get_paper("domino").setups["dgx-h100"]
    found = domino.gain(setup, domino.Case(model="gpt3-6.7b", tp=8, seq_len=1024, micro_batch=16))
    assert found is not None
    assert 1.0 < found.ratio < 1.3


def test_parts_exchange_in_every_layer() -> None:
    claim = claim_of("gnnpipe", "volume-factor")
    assert gnnpipe.reduction(claim.setup, 32) / gnnpipe.reduction(claim.setup, 8) == pytest.approx(4.0)


def test_plans_by_hand_differ_at_the_smallest_size() -> None:
    times = realhf.times_s(get_paper("realhf").setups["four-7b"])
    assert times["searched"] < times["symmetric"] < times["zero3"]
