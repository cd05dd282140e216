"""``orrery bits`` on the layers of HAWQ-V3's ResNet-50."""

from pathlib import Path

import pytest

from orrery.scenario.bits_files import read_layers
from orrery_papers.hawq_v3.layers import resnet50

DATA = Path(__file__).resolve().parents[3] / "docs" / "data"


def test_the_published_layers_of_resnet50_are_the_shipped_ones():
    formats = ("int8", "int4_int4")
    shipped, published = read_layers(DATA / "resnet50-t4.csv", formats), resnet50()
    for ours, theirs in zip(shipped, published, strict=True):
        assert (ours.name, ours.tied, ours.num_parameters) == (theirs.name, theirs.tied, theirs.num_parameters)
        assert (ours.work.m, ours.work.n, ours.work.k) == (theirs.work.m, theirs.work.n, theirs.work.k)
        for field in ("weight_ratio", "errors", "times_s"):
            assert getattr(ours, field) == pytest.approx(getattr(theirs, field))
