"""Synchronous rounds: every client takes the same number of steps, and the server waits for the slowest."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.engine.streams import stream
from orrery.fleet.federated.federation import Federation, History


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageKnobs:
    """Local steps of a round."""

    num_steps: int = 100

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 100_000)


def rule(run: Federation, knobs: AverageKnobs) -> History:
    """The mean of all clients' weights, once a round; a round lasts as long as its slowest client. [mcmahan-2017]"""
    weights, draw = run.start(), stream(run.seed, "federated/steps")
    round_s = knobs.num_steps * max(run.step_s)
    times, accuracies = [0.0], [run.accuracy(weights)]
    while times[-1] + round_s <= run.run_s:
        trained = [run.trained(i, weights, knobs.num_steps, draw) for i in range(run.num_clients)]
        weights = np.mean(trained, axis=0)
        times.append(times[-1] + round_s)
        accuracies.append(run.accuracy(weights))
    return History(time_s=np.array(times), accuracy_frac=np.array(accuracies))


TECHNIQUE = Technique(
    name="federated-average",
    extension_point="fleet.federated",
    rule=rule,
    knobs=AverageKnobs,
    gains="Nothing is ever stale: every update starts from the same weights.",
    costs="Fast clients wait for the slowest one in every round.",
    claims=("mcmahan-2017",),
)
