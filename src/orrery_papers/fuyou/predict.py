"""Fuyou: one consumer device, twelve drives, and the schedule that ZeRO-Infinity follows on them."""

from collections.abc import Iterator
from functools import partial

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.layers import layer_work
from orrery.execution.offload.shapes import gpt_of
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import shortage
from orrery.execution.offload.work import Work
from orrery_papers.shared.offloaded import device_of, largest_of, step_of, tiers_for, work_of

PRODUCTS = (
    "products take the constants of the one measured device of the generation, which its power limit holds back, as it "
    "has twice the rate and fewer watts: some 110 TFLOP/s here, where owners of this device time 155 to 168, and the "
    "authors' own recomputation is that of 149"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Rates from lanes, sizes from bytes."""
    claims = {claim.id: claim for claim in paper.claims}
    small, large = claims["rate-13b"].setup, claims["rate-175b"].setup
    ours = step_of("overlapped-update", work(small), tiers_for(small))
    theirs = step_of("zero-infinity", work(small), tiers_for(small))
    swapped = ours.choices["swapped_frac"]
    yield Prediction(
        claim="rate-13b",
        predicted=ours.flops_per_s,
        differs=PRODUCTS,
        because=f"update under the backward pass; {swapped:.0%} of what saves recomputation is swapped",
    )
    drives = "the drives' data-sheet rates are taken, which the swapper's own reads and writes do not reach"
    yield Prediction(
        claim="rate-13b-zero-infinity",
        predicted=theirs.flops_per_s,
        differs=drives,
        because="every layer computed again; states read, updated and written in turn after the backward pass",
    )
    yield Prediction(
        claim="rate-ratio",
        predicted=ours.flops_per_s / theirs.flops_per_s,
        because="the two rates above",
        differs=f"{PRODUCTS}; {drives}",
    )
    made = work(small)
    yield Prediction(
        claim="activations-13b",
        predicted=made.num_layers * made.activation_bytes,
        because="inputs of products, norms, the activation and attention: 32 bytes a token and element of width",
    )
    yield Prediction(
        claim="recompute-13b",
        predicted=made.num_layers * made.forward_s,
        because="every layer forward again",
        differs=PRODUCTS,
    )
    yield Prediction(
        claim="states-moved-13b",
        predicted=made.num_parameters * (made.state_bytes + made.gradient_bytes),
        because="12 bytes of states and 2 of gradients, or of parameters, each way",
    )
    least = claims["largest"].setup
    yield Prediction(
        claim="largest",
        predicted=largest_of("overlapped-update", tiers_for(least), partial(sized, least), 1e9),
        because="two layers and their gradients on the device, all else on host and drives",
    )
    batch, step = largest_batch(large)
    yield Prediction(
        claim="rate-175b",
        predicted=step.flops_per_s,
        differs="the batch behind the number was not found",
        because=f"the same schedule with {batch} sequences, the most that fit",
    )


def work(setup: Setup, batch: int = 0) -> Work:
    """The set-up's step, its loss one sequence at a time."""
    batch = batch or int(setup.number("num_micro_batch"))
    return work_of(setup, sequences=batch, loss_tokens=int(setup.number("sequence_tokens")))


def largest_batch(setup: Setup) -> tuple[int, OffloadedStep]:
    """The largest power of two, up to the set-up's batch, that the device holds, and its step."""
    batch, tiers = int(setup.number("num_micro_batch")), tiers_for(setup)
    step = step_of("overlapped-update", work(setup, batch), tiers)
    while batch > 1 and shortage(step.held, tiers) is not None:
        batch //= 2
        step = step_of("overlapped-update", work(setup, batch), tiers)
    return batch, step


def sized(setup: Setup, num_parameters: float) -> Work:
    """A model of another size."""
    tokens = int(setup.number("sequence_tokens"))
    return layer_work(
        gpt_of(num_parameters),
        device_of(setup),
        sequences=int(setup.number("num_micro_batch")),
        sequence_tokens=tokens,
        loss_tokens=tokens,
    )
