"""HAWQ-V3: ResNet50 in four bits, in eight, and mixed by the integer program with the kernels floor's times."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery_papers.hawq_v3.layers import mixed, resnet50_options, speedup

LIMITS = ("high", "medium", "low")
DIFFERS = "results are counted as 16 bits wide, where integer-only inference writes codes of four or eight"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The speed-up of four bits, then that of the least perturbed mixture at every limit."""
    setup = paper.setups["resnet50"]
    options = resnet50_options(get_device(setup.word("device")), int(setup.number("num_batch")), has_times=False)
    four = speedup(options)
    yield Prediction(claim="speedup-int4", predicted=four, because="52 layers by the kernels floor", differs=DIFFERS)
    left_frac = 1.0
    for name, limit in zip(LIMITS, setup.numbers("latency_limits_frac"), strict=True):
        found = mixed(options, 1.0 / four + limit * (1.0 - 1.0 / four))
        if isinstance(found, Infeasible):
            continue
        left_frac = found.total("latency") / float(options.uniform("latency")[0])
        perturbed = found.perturbation_ratio / float(options.perturbation_ratio[:, 1].sum())
        yield Prediction(
            claim=f"speedup-{name}",
            predicted=1.0 / left_frac,
            because=f"{found.formats.count(options.formats[1])} of {len(options.layers)} layers in four bits, with "
            f"{perturbed:.0%} of their perturbation",
            differs=DIFFERS,
        )
    yield Prediction(claim="latency-mixed", predicted=1.0 - left_frac, because="the tightest limit", differs=DIFFERS)
