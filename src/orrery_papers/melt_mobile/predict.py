"""MELT: a quantised model on a small board, and what binds it."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.shard import shard
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload
from orrery_papers.shared.setup import deployment


def predict(paper: Paper) -> Iterator[Prediction]:
    """What binds a decode step, then its pace against its bytes."""
    setup = paper.setups["jetson"]
    found = run(setup)
    by = dict[str, float]()
    for part in found.cost.parts:
        by[part.bound_by] = by.get(part.bound_by, 0.0) + part.exposed_s
    yield Prediction(
        claim="memory-bound",
        predicted=by.get("memory", 0.0) / sum(by.values()),
        because=", ".join(f"{name} {share / sum(by.values()):.0%}" for name, share in by.items()),
        differs="the batch is larger than one user's",
    )
    weights = shard(deployed(setup)).weight_bytes
    bandwidth = get_device(setup.word("device")).memory_bandwidth_bytes_per_s
    yield Prediction(
        claim="follows-bytes",
        predicted=found.tpot_s * bandwidth / weights,
        because=f"{found.tpot_s * 1e3:.1f} ms a token, {weights / bandwidth * 1e3:.1f} ms for its bytes at peak",
        differs="products reach a share of the peak bandwidth, and the host adds to every step",
    )


def run(setup: Setup) -> Estimate:
    """One batch from start to end."""
    work = Workload(
        mode="static",
        input_tokens=setup.number("input_tokens"),
        output_tokens=setup.number("output_tokens"),
        batch_size=int(setup.number("num_batch")),
    )
    found = estimate(deployed(setup), work)
    if isinstance(found, Infeasible):
        raise OutOfRange(str(found))
    return found


def deployed(setup: Setup) -> Deployment:
    """The set-up on its engine, with its weights' format."""
    found = deployment(setup, engine=setup.word("engine"), max_num_seqs=int(setup.number("num_batch")))
    return replace(found, formats=replace(found.formats, weights=setup.word("weights_format")))
