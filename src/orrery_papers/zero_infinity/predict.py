"""ZeRO-Infinity: devices that a trillion parameters need, and what drives and all links together make of them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import ceil

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload.layers import layer_work
from orrery.execution.offload.shapes import gpt_of
from orrery.execution.offload.step import activations_bytes
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work
from orrery_papers.shared.offloaded import device_of, largest_of, step_of, tiers_for, work_of

STATE_BYTES = 20.0  # section 3: FP32 gradients are counted too
FINEST_PIECES = 48  # the largest product of a layer cut by sixteen


def predict(paper: Paper) -> Iterator[Prediction]:
    """Devices from bytes; the rate from lanes."""
    claims = {claim.id: claim for claim in paper.claims}
    pod, node = claims["gpus-for-1t"].setup, claims["fine-tune-1t"].setup
    yield Prediction(
        claim="gpus-for-1t",
        predicted=devices_for(pod),
        because="16 bytes a parameter over all devices; checkpoints of two sequences, a 16th of a layer on each",
        differs="at section 3's 20 bytes a parameter it would take a quarter more, and fewer with smaller batches",
    )
    memory = device_of(pod).memory_capacity_bytes
    yield Prediction(
        claim="gpus-for-100b",
        predicted=ceil(STATE_BYTES * 100e9 / memory),
        because="20 bytes a parameter, nothing else",
    )
    run = claims["petaflops"].setup
    step = step_of("zero-infinity", work_of(run, is_attention_fused=False), tiers(run))
    total = step.flops_per_s * run.number("num_devices")
    differs = "products and small kernels of a V100 were slower than the catalogue's"
    yield Prediction(
        claim="petaflops",
        predicted=total,
        differs=differs,
        because="layers arrive under the computing; states pass the drives after the backward pass",
    )
    peak = device_of(run).dense_flops_per_s["fp16"] * run.number("num_devices")
    yield Prediction(
        claim="share-of-peak", predicted=total / peak, because="the rate over 125 TFLOP/s", differs=differs
    )
    yield Prediction(
        claim="fine-tune-1t",
        predicted=largest_of("zero-infinity", tiers(node), partial(sized, node), 1e9, num_pieces=FINEST_PIECES),
        because="18 bytes a parameter on the node's drives, pieces of layers and a layer's activations on each device",
    )
    yield Prediction(
        claim="largest-512",
        because="the same on the drives of 32 nodes, checkpoints in host memory",
        predicted=largest_of("zero-infinity", tiers(pod), partial(sized, pod, batch=1), 1e9, num_pieces=FINEST_PIECES),
        differs="a layer's activations of a whole sequence must fit a device here; the paper's tiling cuts those, too",
    )


def tiers(setup: Setup) -> Tiers:
    """One of the devices of a node whose drives, memory and links all share."""
    return tiers_for(
        setup,
        num_ranks=int(setup.number("num_devices")),
        num_sharing=int(setup.number("num_devices_per_node")),
        num_per_link=int(setup.number("num_devices_per_link")),
    )


def sized(setup: Setup, num_parameters: float, batch: int = 0) -> Work:
    """The work of a model of that size with the set-up's batch, its loss one sequence at a time."""
    tokens = int(setup.number("sequence_tokens"))
    return layer_work(
        gpt_of(num_parameters),
        device_of(setup),
        sequences=batch or int(setup.number("num_micro_batch")),
        sequence_tokens=tokens,
        loss_tokens=tokens,
    )


def devices_for(setup: Setup) -> float:
    """The fewest devices whose memory holds equal parts of all states beside the checkpoints of their sequences."""
    work = work_of(setup, is_attention_fused=False)
    node = int(setup.number("num_devices_per_node"))
    room = tiers(setup).gpu_bytes - activations_bytes(
        replace(work, activation_bytes=work.activation_bytes / node, logits_bytes=work.logits_bytes / node), True
    )
    each = work.parameter_bytes + work.gradient_bytes + work.state_bytes
    return ceil(each * work.num_parameters / room)
