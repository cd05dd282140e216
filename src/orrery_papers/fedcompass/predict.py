"""FedCompass: three schedules of the same clients on data that are unlike, by the server's clock."""

from collections.abc import Iterator, Mapping

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment
from orrery_papers.shared.layer_costs import geometric_mean

OURS = "federated-compass"

NUM_DRAWN = 5
"""Federations that are drawn: one alone says little, see [unstated] draws."""

DIFFERS = (
    "a linear classifier on points stands for networks on images; and the more speeds differ, the older are slow "
    "clients' updates on arrival"
)

Schedule = Mapping[str, float]
"""Time to the target, and accuracy at the end."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Time to the same accuracy, and accuracy at the end, for each spread of speeds; means over drawn federations."""
    runs: dict[str, list[Mapping[str, Schedule]]] = {}
    for claim in paper.claims:
        if (name := claim.setup.name) not in runs:
            runs[name] = [histories(claim.setup, seed) for seed in range(NUM_DRAWN)]
        other = f"federated-{'average' if 'over-synchronous' in claim.id else 'async'}"
        is_accuracy = claim.metric == "accuracy_ratio"
        gains = [(accuracy_ratio if is_accuracy else time_ratio)(run, other) for run in runs[name]]
        yield Prediction(
            claim=claim.id,
            predicted=geometric_mean(gains),
            differs=DIFFERS,
            because=f"{'accuracy at the end' if is_accuracy else 'time to the target'} in {NUM_DRAWN} drawn "
            f"federations: {min(gains):.2f} to {max(gains):.2f} times as good",
        )


def accuracy_ratio(run: Mapping[str, Schedule], other: str) -> float:
    """At the end, over that of the other schedule."""
    return run[OURS]["accuracy_frac"] / run[other]["accuracy_frac"]


def time_ratio(run: Mapping[str, Schedule], other: str) -> float:
    """How many times sooner than the other schedule."""
    return run[other]["target_s"] / run[OURS]["target_s"]


def histories(setup: Setup, seed: int) -> Mapping[str, Schedule]:
    """``orrery experiment federated`` on the same points and clients, by schedule; a target never reached: the end.

    The learning rate is the experiment's own, under which a task needs many rounds.
    """
    speeds = setup.numbers("client_speeds_swept")
    if len(speeds) != int(setup.number("num_clients")):
        raise OutOfRange(f"setup {setup.name}: {len(speeds)} speeds for {setup.number('num_clients'):g} clients.")
    sizes = {
        "speeds": ",".join(f"{speed:g}" for speed in speeds),
        "num_local_steps": f"{setup.number('num_most_steps'):.0f}",
        "num_least_steps": f"{setup.number('num_least_steps'):.0f}",
        **{name: f"{setup.number(name):.0f}" for name in ("num_classes", "num_least_held", "num_most_held")},
        "run_s": f"{setup.number('run_s'):g}",
    }
    rows = run_experiment("federated", seed=seed, sizes=[f"{name}={value}" for name, value in sizes.items()]).rows
    end_s = max(float(row["time_s"]) for row in rows)
    found: dict[str, Schedule] = {}
    for row in rows:
        target_s = float(row["target_s"])
        found[str(row["schedule"])] = {
            "target_s": target_s if target_s == target_s else end_s,
            "accuracy_frac": float(row["accuracy_frac"]),
        }
    return found
