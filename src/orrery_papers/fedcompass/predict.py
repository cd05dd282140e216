"""FedCompass: three schedules of the same clients on data that are unlike, by the server's clock."""

from collections.abc import Iterator, Mapping
from math import isinf

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.federated.federation import History, federation
from orrery.fleet.federated.registry import get_schedule
from orrery_papers.shared.layer_costs import geometric_mean

TARGET_FRAC = 0.98
"""Target, as a share of the accuracy with which the synchronous run ends."""

STEP_S = 0.01
"""What the speeds of a set-up are multiples of."""

OURS = "federated-compass"

NUM_DRAWN = 5
"""Federations that are drawn: one alone says little, see [unstated] draws."""

DIFFERS = (
    "a linear classifier on points stands for networks on images: it is trained after one or two rounds, so the time "
    "to a target hangs on single updates; and the more speeds differ, the older are slow clients' updates on arrival"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Time to the same accuracy, and accuracy at the end, for each spread of speeds; means over drawn federations."""
    runs: dict[str, list[Mapping[str, History]]] = {}
    for claim in paper.claims:
        if (name := claim.setup.name) not in runs:
            runs[name] = [histories(claim.setup, seed) for seed in range(NUM_DRAWN)]
        other = f"federated-{'average' if 'over-synchronous' in claim.id else 'async'}"
        is_accuracy = claim.metric == "accuracy_ratio"
        gains = [(accuracy_ratio if is_accuracy else time_ratio)(run, other) for run in runs[name]]
        yield Prediction(
            claim=claim.id, predicted=geometric_mean(gains), differs=DIFFERS,
            because=f"{'accuracy at the end' if is_accuracy else 'time to the target'} in {NUM_DRAWN} drawn "
            f"federations: {min(gains):.2f} to {max(gains):.2f} times as good",
        )  # fmt: skip


def accuracy_ratio(run: Mapping[str, History], other: str) -> float:
    """At the end, over that of the other schedule."""
    return run[OURS].final_frac / run[other].final_frac


def time_ratio(run: Mapping[str, History], other: str) -> float:
    """How many times sooner than the other schedule."""
    return time_s(run, other) / time_s(run, OURS)


def time_s(run: Mapping[str, History], name: str) -> float:
    """When that schedule reached the target; where it never did, the end of the run."""
    target = TARGET_FRAC * run["federated-average"].final_frac
    reached_s = run[name].reached_s(target)
    return float(run[name].time_s[-1]) if isinf(reached_s) else reached_s


def histories(setup: Setup, seed: int) -> Mapping[str, History]:
    """Each schedule's run on the same points and clients."""
    speeds = setup.numbers("client_speeds_swept")
    if len(speeds) != int(setup.number("num_clients")):
        raise OutOfRange(f"setup {setup.name}: {len(speeds)} speeds for {setup.number('num_clients'):g} clients.")
    run = federation(tuple(STEP_S * speed for speed in speeds), run_s=setup.number("run_s"), seed=seed)
    most, least = int(setup.number("num_most_steps")), int(setup.number("num_least_steps"))
    knobs = {
        "federated-average": {"num_steps": most}, "federated-async": {"num_steps": most},
        "federated-compass": {"num_most": most, "num_least": least},
    }  # fmt: skip
    found = ((name, get_schedule(name), given) for name, given in knobs.items())
    return {name: technique.rule(run, technique.knobs(**given)) for name, technique, given in found}
