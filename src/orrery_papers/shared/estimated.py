"""A static batch of a paper's set-up on one server, from start to end, as the serving floor answers it."""

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Setup
from orrery.execution.layout import Deployment
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload
from orrery_papers.shared.setup import deployment


def run_of(d: Deployment, batch: int, input_tokens: float, output_tokens: float) -> Estimate:
    """One batch of equal requests; refuses one that does not fit."""
    done = estimate(
        d, Workload(mode="static", batch_size=batch, input_tokens=input_tokens, output_tokens=output_tokens)
    )
    if not isinstance(done, Estimate):
        raise FactError(f"{d.model.name} on {d.cluster.device.name}: a batch of {batch} does not fit.")
    return done


def static_run(setup: Setup, *, device: str, engine: str, batch: int = 1, layout: str = "") -> Estimate:
    """The set-up's lengths on a device with an engine."""
    d = deployment(setup, device=device, engine=engine, layout=layout)
    return run_of(d, batch, setup.number("input_tokens"), setup.number("output_tokens"))
