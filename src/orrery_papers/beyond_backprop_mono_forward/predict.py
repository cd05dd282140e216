"""Beyond backpropagation: steps of four learning rules on one device behind a slow data loader, times their passes."""

import math
from collections.abc import Iterator

from orrery.base.knobs import NoKnobs
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.small.pricing import Price, mean, price
from orrery.training.small.techniques import backpropagation, cascaded_forward, forward_forward, mono_forward
from orrery.training.small.work import Sizes

KEY = "beyond-backprop-mono-forward"

RULES = {
    "backpropagation": backpropagation.rule,
    "cascaded-forward": cascaded_forward.rule,
    "forward-forward": forward_forward.rule,
    "mono-forward": mono_forward.rule,
}
IN_TURN = {"cascaded-forward", "mono-forward"}
"""Rules that train one layer after the other."""

RUN = "passes that the run reports, each at the loader's pace; kernels at their power, the device idle between them"
BECAUSE = {
    "time_reduction": "passes of both runs, each at the loader's pace",
    "energy_reduction": RUN,
    "baseline_energy": RUN,
    "run_energy": RUN,
    "run_time": RUN,
    "time_multiple": RUN,
    "energy_multiple": RUN,
    "memory_reduction": "context, weights, gradients and moments of what is trained, and kept activations",
    "matched_energy_reduction": "energy of one pass of each",
    "matched_time_reduction": "time of one pass of each",
}

PACE = (
    "a pass of Mono-Forward took 8 to 12 % less time than one of backpropagation, though the same loader fed both: "
    "work of the host between batches is not modelled"
)
DIFFERS = {
    "time_reduction": PACE,
    "run_time": PACE,
    "run_energy": PACE,
    "energy_reduction": PACE,
    "baseline_energy": "the framework's optimizer takes several passes over the weights, and validation is left out",
    "memory_reduction": "the framework's allocator is not modelled: blocks of earlier layers' states may stay reserved",
    "time_multiple": "its passes took 2 to 2.5 times as long: every label is tried on the validation set, and many "
    "small operations keep the host busy",
    "energy_multiple": "its passes took 2 to 2.5 times as long, as the times show",
    "matched_energy_reduction": "the pace of the later study's loader is not written; that of the first one is taken",
    "matched_time_reduction": "nothing but the loader sets the pace here",
}
"""Explanations of a difference, by metric."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every row of Mono-Forward and Forward-Forward, and the headlines."""
    for claim in paper.claims:
        if claim.metric in BECAUSE:
            yield Prediction(
                claim=claim.id, predicted=answer(claim), because=BECAUSE[claim.metric], differs=DIFFERS[claim.metric]
            )


def answer(claim: Claim) -> float:
    """The claim's metric."""
    setup = claim.setup
    rule = "forward-forward" if setup.name.startswith("ff-") else "mono-forward"
    ours, theirs = run(setup, rule), run(setup, "backpropagation")
    if claim.metric.startswith("matched"):
        ours, theirs = one_pass(setup, rule), one_pass(setup, "backpropagation")
    return {
        "time_reduction": 1.0 - ours.time_s / theirs.time_s,
        "matched_time_reduction": 1.0 - ours.time_s / theirs.time_s,
        "energy_reduction": 1.0 - ours.energy_j / theirs.energy_j,
        "matched_energy_reduction": 1.0 - ours.energy_j / theirs.energy_j,
        "memory_reduction": 1.0 - _memory_bytes(setup, ours) / _memory_bytes(setup, theirs),
        "baseline_energy": theirs.energy_j,
        "run_time": ours.time_s,
        "run_energy": ours.energy_j,
        "time_multiple": ours.time_s / theirs.time_s,
        "energy_multiple": ours.energy_j / theirs.energy_j,
    }[claim.metric]


def run(setup: Setup, rule: str) -> Price:
    """A whole run: as many passes as it took until early stopping."""
    passes = setup.number("num_baseline_epochs" if rule == "backpropagation" else "num_epochs")
    return one_pass(setup, rule).times(passes)


def one_pass(setup: Setup, rule: str) -> Price:
    """The training set once: the mean over layers where they learn in turn."""
    batch = int(setup.number("num_baseline_batch_points" if rule == "backpropagation" else "num_batch_points"))
    sizes = Sizes(
        inputs=int(setup.number("num_inputs")),
        hidden=tuple(int(x) for x in setup.numbers("hidden_widths")),
        num_classes=int(setup.number("num_classes")),
        batch=batch,
    )
    units = range(len(sizes.hidden)) if rule in IN_TURN else range(1)
    device, host_s = get_device(setup.word("device")), batch * loader_s(setup)
    steps = [price(RULES[rule](sizes, unit, NoKnobs()), device, host_s=host_s) for unit in units]
    return mean(steps).times(math.ceil(setup.number("num_training_points") / batch))


def loader_s(setup: Setup) -> float:
    """Host time (s) for one point, from the baseline's epochs; see [unstated] data_loader."""
    points = setup.number("num_baseline_epochs") * setup.number("num_training_points")
    return setup.number("baseline_run_s") / points


def _memory_bytes(setup: Setup, found: Price) -> float:
    return setup.number("context_bytes") + found.state_bytes + found.activation_bytes
