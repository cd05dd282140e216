"""Redco: two rules lay out every dense transformer, and the memory of a device says what fits."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train import train
from orrery.training.placement.redco import RULES

FAMILIES = (
    "gpt-j-6b",
    "llama-7b",
    "llama-13b",
    "llama-30b",
    "llama-65b",
    "t5-3b",
    "t5-11b",
    "opt-6.7b",
    "opt-13b",
    "opt-30b",
    "opt-66b",
    "opt-175b",
)
"""Published models of the four families that the paper names."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The largest model that fits the largest mesh, the rules, and the memory of every run of the table."""
    for claim in paper.claims:
        if claim.id == "model-scale":
            yield Prediction(
                claim=claim.id,
                predicted=largest_parameters(claim.setup),
                because="the largest model of the four families whose training fits the chips under the two rules",
            )
        elif claim.id == "rules":
            yield Prediction(
                claim=claim.id,
                predicted=float(len(RULES)),
                because="rules from which the layouts of GPT-J, LLaMA, T5 and OPT come out as written by hand",
            )
        elif claim.metric == "device_memory":
            yield fits(claim)


def fits(claim: Claim) -> Prediction:
    """Memory on the mesh that ran, and on the next smaller one."""
    shards = int(claim.setup.number("num_devices"))
    rows = memory(claim.setup)
    before = rows[shards // 2]
    smaller = (
        f"{shards // 2} shards hold {before['total_bytes'] / 1e9:.3g} GB, {'and fit' if before['fits'] else 'too much'}"
    )
    return Prediction(
        claim=claim.id,
        predicted=rows[shards]["total_bytes"],
        because="weights, gradients and moments in 32 bits, over all devices, and one sequence's activations; "
        f"{smaller}",
        differs="the batch and recomputation of the table are not written",
    )


def memory(setup: Setup, model: str = "") -> dict[int, Mapping[str, Any]]:
    """``orrery train --placement two-rules``: a device's memory by the number of shards."""
    devices = int(setup.number("num_devices"))
    answer = train(
        model=model or setup.word("model"),
        device=setup.word("device"),
        devices=devices,
        global_batch=devices,
        micro_batch=int(setup.number("num_global_batch")),
        seq_len=int(setup.number("sequence_tokens")),
        placement="two-rules",
    )
    return {row["shards"]: row for row in answer.table("memory_by_rules")}


def largest_parameters(setup: Setup) -> float:
    """Parameters of the largest of the families' models that fits."""
    shards = int(setup.number("num_devices"))
    fitting = [name for name in FAMILIES if memory(setup, name)[shards]["fits"]]
    return float(max(get_model(name).num_parameters for name in fitting))
