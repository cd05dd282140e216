"""MELT: a quantised model on a small board and on a phone, and what binds it."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.shard import shard
from orrery.scenario.ask import Answer, estimate
from orrery_papers.shared.setup import settings_of


def predict(paper: Paper) -> Iterator[Prediction]:
    """The bound of a decode step, then its speed against its bytes."""
    setup = paper.setups["jetson"]
    found = answer_for(setup)
    by = dict[str, float]()
    for part in found.estimate.cost.parts:
        by[part.bound_by] = by.get(part.bound_by, 0.0) + part.exposed_s
    yield Prediction(
        claim="memory-bound",
        predicted=by.get("memory", 0.0) / sum(by.values()),
        because=", ".join(f"{name} {percent(share / sum(by.values()))}" for name, share in by.items()),
        differs="the batch is larger than one user's",
    )
    deployment = found.question.deployment
    weights, bandwidth = shard(deployment).weight_bytes, deployment.cluster.device.memory_bandwidth_bytes_per_s
    tpot_s = found.estimate.tpot_s
    yield Prediction(
        claim="follows-bytes",
        predicted=tpot_s * bandwidth / weights,
        because=f"{tpot_s * 1e3:.1f} ms a token, {weights / bandwidth * 1e3:.1f} ms for its bytes at peak",
        differs="products reach a share of the peak bandwidth, and the host adds to every step",
    )


def answer_for(setup: Setup) -> Answer:
    """One batch from start to end, by orrery estimate."""
    found = estimate(
        **settings_of(setup),
        engine=setup.word("engine"),
        engine_version="0",
        batch=int(setup.number("num_batch")),
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=int(setup.number("output_tokens")),
    )
    assert isinstance(found, Answer), "the model fits the board"
    return found
