"""FedCompass: three schedules of the same clients on data that are unlike, by the server's clock."""

from collections.abc import Iterator, Mapping
from math import isinf

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.reproduce.prediction import Prediction
from orrery.fleet.federated.federation import History, federation
from orrery.fleet.federated.registry import get_schedule

TARGET_FRAC = 0.98
"""Of the accuracy with which the synchronous run ends."""

STEP_S = 0.01
"""What the speeds of a set-up are multiples of."""

DIFFERS = (
    "a linear classifier on points stands for networks on images, and speeds are assumed; the more speeds differ, the "
    "older are the slow clients' updates when they come"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Time to the same accuracy, and accuracy at the end, for each spread of speeds."""
    runs: dict[str, Mapping[str, History]] = {}
    for claim in paper.claims:
        if (name := claim.setup.name) not in runs:
            runs[name] = histories(claim.setup)
        ours, other = "federated-compass", f"federated-{'average' if 'over-synchronous' in claim.id else 'async'}"
        if claim.metric == "accuracy_ratio":
            best, worse = (runs[name][which].final_frac for which in (ours, other))
            because, value = f"{best:.3f} at the end, not {worse:.3f}", best / worse
        else:
            soon, late = (time_s(runs[name], which) for which in (ours, other))
            because, value = f"{soon:.2f} s to the target, not {late:.2f} s", late / soon
        yield Prediction(claim=claim.id, predicted=value, because=because, differs=DIFFERS)


def time_s(run: Mapping[str, History], name: str) -> float:
    """When that schedule reached the target; where it never did, the end of the run."""
    target = TARGET_FRAC * run["federated-average"].final_frac
    reached_s = run[name].reached_s(target)
    return float(run[name].time_s[-1]) if isinf(reached_s) else reached_s


def histories(setup: Setup) -> Mapping[str, History]:
    """Each schedule's run."""
    speeds = setup.numbers("client_speeds_swept")
    if len(speeds) != int(setup.number("num_clients")):
        raise OutOfRange(f"setup {setup.name}: {len(speeds)} speeds for {setup.number('num_clients'):g} clients.")
    run = federation(tuple(STEP_S * speed for speed in speeds), run_s=setup.number("run_s"))
    most, least = int(setup.number("num_most_steps")), int(setup.number("num_least_steps"))
    knobs = {
        "federated-average": {"num_steps": most}, "federated-async": {"num_steps": most},
        "federated-compass": {"num_most": most, "num_least": least},
    }  # fmt: skip
    found = ((name, get_schedule(name), given) for name, given in knobs.items())
    return {name: technique.rule(run, technique.knobs(**given)) for name, technique, given in found}
