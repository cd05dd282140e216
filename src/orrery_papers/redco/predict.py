"""Redco: two rules lay out every dense transformer, and the memory of a device says what fits."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.placement.redco import RULES, DeviceMemory, training_memory

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
            yield Prediction(
                claim=claim.id,
                predicted=memory(claim.setup).total_bytes,
                because="weights, gradients and moments in 32 bits, over all devices, and one sequence's activations",
                differs="the batch and recomputation of the table are not written",
            )


def memory(setup: Setup, model: str = "") -> DeviceMemory:
    """Memory (bytes) of one device of a set-up, with its own model or another one."""
    return training_memory(
        get_model(model or setup.word("model")),
        int(setup.number("num_devices")),
        sequence_tokens=int(setup.number("sequence_tokens")),
        num_sequences=int(setup.number("num_global_batch")),
    )


def largest_parameters(setup: Setup) -> float:
    """Parameters of the largest of the families' models that fits."""
    room_bytes = get_device(setup.word("device")).memory_capacity_bytes
    fitting = [name for name in FAMILIES if memory(setup, name).total_bytes <= room_bytes]
    return float(max(get_model(name).num_parameters for name in fitting))
