"""HAWQ-V3: ResNet50 in integers of four bits, of eight, and mixed by ``orrery bits``."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.scenario.bits import BitsAnswer, bits
from orrery_papers.hawq_v3.layers import EIGHT, FOUR, layers_file

LIMITS = ("high", "medium", "low")


def predict(paper: Paper) -> Iterator[Prediction]:
    """The speed-up of four bits, then that of the least perturbed mixture at every limit."""
    setup = paper.setups["resnet50"]
    settings: dict[str, Any] = {
        "layers": layers_file(int(setup.number("num_batch"))),
        "device": setup.word("device"),
        "formats": f"{EIGHT},{FOUR}",
        "integer_only": True,
    }
    whole = bits(**settings)
    assert isinstance(whole, BitsAnswer)
    eight, narrow = whole.uniform
    four = eight.latency_s / narrow.latency_s
    yield Prediction(claim="speedup-int4", predicted=four, because="52 layers by the kernels floor, results in codes")
    left_frac = 1.0
    for name, limit in zip(LIMITS, setup.numbers("latency_limits_frac"), strict=True):
        found = bits(**settings, latency_ratio=1.0 / four + limit * (1.0 - 1.0 / four))
        if not isinstance(found, BitsAnswer):
            continue
        best = found.best
        left_frac = best.total("latency") / eight.latency_s
        num_narrow = Counter(best.formats)[FOUR]
        yield Prediction(
            claim=f"speedup-{name}",
            predicted=1.0 / left_frac,
            because=f"{num_narrow} of {len(best.formats)} layers in four bits, with "
            f"{percent(best.perturbation_ratio / narrow.perturbation_ratio)} of their perturbation",
            differs="times of layers, TVM's on one card in the paper and the kernel rules' here, so that limits in "
            "parts of the gain fall elsewhere",
        )
    yield Prediction(claim="latency-mixed", predicted=1.0 - left_frac, because="the tightest limit")
