"""Fuyou: one consumer device, twelve drives, and the schedule that ZeRO-Infinity follows on them."""

from collections.abc import Iterator
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.train_offload import OffloadAnswer
from orrery_papers.shared.offloaded import answer_of, largest_of, step_of

PRODUCTS = (
    "products take the constants of the one measured device of the generation, which its power limit holds back, as it "
    "has twice the rate and fewer watts: some 110 TFLOP/s here, where owners of this device time 155 to 168, and the "
    "authors' own recomputation is that of 149"
)
DRIVES = "the drives' data-sheet rates are taken, which the swapper's own reads and writes do not reach"
LOSS: dict[str, Any] = {"loss_tokens": 1024}
"""The loss of one sequence at a time: the logits of all would not fit."""

OURS, THEIRS = "overlapped-update", "zero-infinity"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates from lanes, sizes from bytes."""
    claims = {claim.id: claim for claim in paper.claims}
    small, large, least = (claims[name].setup for name in ("rate-13b", "rate-175b", "largest"))
    yield from rates(small)
    yield from pieces(small)
    yield Prediction(
        claim="largest",
        predicted=largest_of(least, OURS, **LOSS),
        because="two layers and their gradients on the device, all else on host and drives",
    )
    batch, step = largest_batch(large, OURS)
    yield Prediction(
        claim="rate-175b",
        predicted=step.model_flops_per_s_per_device,
        differs="the batch behind the number was not found",
        because=f"the same schedule with {batch} sequences, the most that fit",
    )


def rates(small: Setup) -> Iterator[Prediction]:
    """Both schedules on the same machine."""
    ours, theirs = (largest_batch(small, name)[1].model_flops_per_s_per_device for name in (OURS, THEIRS))
    yield Prediction(
        claim="rate-13b",
        predicted=ours,
        differs=PRODUCTS,
        because="update under the backward pass; as much of what saves recomputation is swapped as makes the step "
        "shortest",
    )
    yield Prediction(
        claim="rate-13b-zero-infinity",
        predicted=theirs,
        differs=DRIVES,
        because="every layer computed again; states read, updated and written in turn after the backward pass",
    )
    yield Prediction(
        claim="rate-ratio",
        predicted=ours / theirs,
        because="the two rates above",
        differs=f"{PRODUCTS}; {DRIVES}",
    )


def pieces(small: Setup) -> Iterator[Prediction]:
    """Bytes kept, computed again and moved."""
    _, nothing_kept = largest_batch(small, THEIRS)
    yield Prediction(
        claim="activations-13b",
        predicted=nothing_kept.activation_bytes,
        because="inputs of products, norms, the activation and attention: 32 bytes a token and element of width",
    )
    yield Prediction(
        claim="recompute-13b",
        predicted=nothing_kept.parts["recomputation"],
        because="every layer forward again",
        differs=PRODUCTS,
    )
    written = step_of(small, OURS, knob="offload.swapped_frac=0", micro_batch=1, **LOSS)
    yield Prediction(
        claim="states-moved-13b",
        predicted=written.lanes["write"] * written.tiers.nvme_write_bytes_per_s,
        because="12 bytes of states and 2 of parameters that a step writes to the drives, and as many are read",
    )


def largest_batch(setup: Setup, name: str) -> tuple[int, OffloadAnswer]:
    """The largest batch, the set-up's or so many times halved, that the device holds, and its step."""
    batch = int(setup.number("num_micro_batch"))
    while batch > 1 and not isinstance(answer_of(setup, name, micro_batch=batch, **LOSS), OffloadAnswer):
        batch //= 2
    return batch, step_of(setup, name, micro_batch=batch, **LOSS)
