"""Asynchronous: the server takes each client's weights as they come, less of them the older their start is."""

import heapq
from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.engine.streams import stream
from orrery.fleet.federated.federation import Federation, History, staleness_weight


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncKnobs:
    """Local steps of a turn, how much of the newest weights is taken, and how fast that falls with their age."""

    num_steps: int = 100
    mix_frac: float = 0.9
    age_power_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 100_000)
        check_range(self, "mix_frac", 0.0, 1.0)


def rule(run: Federation, knobs: AsyncKnobs) -> History:
    """w <- (1 - a) w + a w_client with a = mix x (1 + age)^-power, and the client starts again. [xie-2019]"""
    weights, draw, version = run.start(), stream(run.seed, "federated/steps"), 0
    turns = [(knobs.num_steps * step_s, i, 0, weights) for i, step_s in enumerate(run.step_s)]
    heapq.heapify(turns)
    times, accuracies = [0.0], [run.accuracy(weights)]
    while turns[0][0] <= run.run_s:
        now_s, client, started, begun = heapq.heappop(turns)
        trained = run.trained(client, begun, knobs.num_steps, draw)
        part = knobs.mix_frac * staleness_weight(version - started, knobs.age_power_ratio)
        weights, version = (1.0 - part) * weights + part * trained, version + 1
        times.append(now_s)
        accuracies.append(run.accuracy(weights))
        heapq.heappush(turns, (now_s + knobs.num_steps * run.step_s[client], client, version, weights))
    return History(time_s=np.array(times), accuracy_frac=np.array(accuracies))


TECHNIQUE = Technique(
    name="federated-async",
    extension_point="fleet.federated",
    rule=rule,
    knobs=AsyncKnobs,
    gains="Nobody waits: every client works all the time.",
    costs="The model swings to whoever came last, and slow clients' updates are old when they come.",
    claims=("xie-2019",),
)
