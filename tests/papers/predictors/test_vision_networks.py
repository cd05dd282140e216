"""Networks for small devices have the work that their papers state, and are mostly passes where those say so."""

import numpy as np
import pytest

from orrery.predictors.cells.latency import PASS, plan
from orrery_papers.efficientvit_msra.vision import NETWORKS, fixed

ONLY = np.zeros((1, 1), np.int64)


@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("mobilenet-v3-large", 219e6),
        ("mobilevit-xxs", 0.4e9),
        ("efficientvit-m2", 201e6),
        ("efficientvit-m5", 522e6),
    ],
)
def test_multiply_adds_are_the_published_ones(name, macs):
    known = plan(fixed(name), 1)
    assert known.total(known.flops, ONLY)[0] / 2 == pytest.approx(macs, rel=0.03)


def test_work_and_bytes_follow_the_batch():
    one, four = (plan(fixed("efficientvit-m2"), batch) for batch in (1, 4))
    assert four.flops[0] == 4 * one.flops[0]
    assert sum(k.moved_bytes for k in four.kernels) == 4 * sum(k.moved_bytes for k in one.kernels)


def test_attention_with_unfolded_patches_launches_mostly_passes():
    shares = {name: float((plan(fixed(name), 1).classes == PASS).mean()) for name in NETWORKS}
    assert shares["mobilevit-xxs"] > 0.5
