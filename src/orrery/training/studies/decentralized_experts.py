"""Experts that each learn the flow of one cluster of the data and never meet, mixed by a router. [mcallister-2025]"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.engine.streams import stream
from orrery.training.small.backpropagation import activations
from orrery.training.small.data import Floats
from orrery.training.small.flows import Mixture, mixture, routed, seen, train_flow, train_router

CLUSTERS = ("near", "dealt")
NUM_JUDGED = 4000
"""Noisy points at which flows are compared with the exact one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Comma-separated numbers of experts; the mixture; the width of networks; points of a step, of all experts."""

    experts: str = "1,2,4,8"
    components: int = 16
    features: int = 2
    spread_ratio: float = 0.3
    hidden: int = 32
    batch: int = 256
    clusters: str = "near"  # or "dealt": components are in clusters whatever their place


def run(request: Run) -> tuple[Row, ...]:
    """A row a number of experts and way to mix them: the error of the flow, as a share of the exact flow's variance."""
    sizes: Sizes = request.sizes
    if sizes.clusters not in CLUSTERS or sizes.spread_ratio <= 0.0:
        raise ScenarioError(
            f"set: clusters = {sizes.clusters!r}, spread_ratio = {sizes.spread_ratio}; write near or dealt, and a "
            "spread_ratio above 0."
        )
    components = whole("components", sizes.components, most=1000)
    batch = whole("batch", sizes.batch, most=10_000)
    most = min(components, batch)
    many = [whole("experts", int(n), most=most) for n in numbers("experts", sizes.experts, least=1)]
    tick = counter(request.progress, sum(many) + len(many))
    return tuple(row for count in many for row in _rows(request, sizes, count, tick))


def _rows(request: Run, sizes: Sizes, count: int, tick: Callable[[], None]) -> Iterator[Row]:
    features, hidden = whole("features", sizes.features, most=100), whole("hidden", sizes.hidden, most=1024)
    of = mixture(sizes.components, features, sizes.spread_ratio, count, request.seed, sizes.clusters == "near")
    x, t, _, _ = of.draw(stream(request.seed, "experiment/flows"), NUM_JUDGED)
    shown, flows = seen(x, t), list[Floats]()
    for k in range(count):
        flows.append(
            activations(train_flow(of, k, hidden, sizes.batch // count, request.steps, request.seed), shown)[-1]
        )
        tick()
    router = train_router(of, hidden, sizes.batch, request.steps, request.seed)
    tick()
    ways = {
        "router": routed(router, x, t),
        "exact chances": of.cluster_chances(x, t),
        "equal shares": np.full((len(x), count), 1.0 / count),
    }
    for way, chances in ways.items():
        yield {"mixed_by": way, "experts": count, "error_frac": _error_frac(of, x, t, chances, np.stack(flows, axis=1))}


def _error_frac(of: Mixture, x: Floats, t: Floats, chances: Floats, flows: Floats) -> float:
    """Mean squared error of the mixed flow over the variance of the exact one; flows (points, experts, features)."""
    exact = of.flow(x, t)
    mixed = (chances[:, :, None] * flows).sum(axis=1)
    return float(((mixed - exact) ** 2).mean() / ((exact - exact.mean(axis=0)) ** 2).mean())


EXPERIMENT = Experiment(
    name="decentralized-experts",
    question="Do experts that never meet, mixed by a router, learn the flow that one model learns?",
    run=run,
    num_steps=1500,
    claims=("decentralized-diffusion",),
    sizes=Sizes,
    keys=("mixed_by", "experts"),
    curve=("experts", "error_frac"),
)
