"""Beyond backpropagation: steps of four learning rules on one device behind a slow data loader, times their passes."""

from collections.abc import Iterator, Mapping
from functools import cache

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

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
    is_matched = claim.metric.startswith("matched")
    ours, theirs = (priced(setup, name, is_matched) for name in (rule, "backpropagation"))
    return {
        "time_reduction": 1.0 - ours["time_s"] / theirs["time_s"],
        "matched_time_reduction": 1.0 - ours["time_s"] / theirs["time_s"],
        "energy_reduction": 1.0 - ours["energy_j"] / theirs["energy_j"],
        "matched_energy_reduction": 1.0 - ours["energy_j"] / theirs["energy_j"],
        "memory_reduction": 1.0 - ours["memory_bytes"] / theirs["memory_bytes"],
        "baseline_energy": theirs["energy_j"],
        "run_time": ours["time_s"],
        "run_energy": ours["energy_j"],
        "time_multiple": ours["time_s"] / theirs["time_s"],
        "energy_multiple": ours["energy_j"] / theirs["energy_j"],
    }[claim.metric]


def priced(setup: Setup, rule: str, is_matched: bool) -> Mapping[str, float]:
    """``orrery experiment mono-forward`` on the set-up's device: the whole run of one rule, or one pass of it.

    A run takes as many passes as it took until early stopping; what is trained here is only as large as it must be.
    """
    is_baseline = rule == "backpropagation"
    passes = 1.0 if is_matched else setup.number("num_baseline_epochs" if is_baseline else "num_epochs")
    points, inputs, classes = (setup.number(name) for name in ("num_training_points", "num_inputs", "num_classes"))
    sizes = {
        "widths": "4",
        "points": "64",
        "batch": "64",
        "priced": f"{points:.0f}:{inputs:.0f}:{classes:.0f}",
        "priced_widths": ",".join(f"{x:.0f}" for x in setup.numbers("hidden_widths")),
        "priced_batch": f"{setup.number('num_baseline_batch_points' if is_baseline else 'num_batch_points'):.0f}",
        "priced_passes": repr(passes),
        "loader_s": repr(loader_s(setup)),
        "context_bytes": repr(setup.number("context_bytes")),
    }
    return _rows(setup.word("device"), tuple(f"{name}={value}" for name, value in sizes.items()))[rule]


@cache
def _rows(device: str, sizes: tuple[str, ...]) -> Mapping[str, Mapping[str, float]]:
    found = run_experiment("mono-forward", steps=1, device=device, sizes=sizes)
    return {
        str(row["rule"]): {name: float(row[name]) for name in ("time_s", "energy_j", "memory_bytes")}
        for row in found.rows
        if row["stops_early"]
    }


def loader_s(setup: Setup) -> float:
    """Host time (s) for one point, from the baseline's epochs; see [unstated] data_loader."""
    points = setup.number("num_baseline_epochs") * setup.number("num_training_points")
    return setup.number("baseline_run_s") / points
