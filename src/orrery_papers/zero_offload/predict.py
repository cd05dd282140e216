"""ZeRO-Offload: largest models and rates on one device, on a DGX-2 and on eight of them."""

from collections.abc import Iterator
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery_papers.shared.offloaded import ALL_TIERS, answer_of, largest_of, step_of

BASELINE = "gpt3-1.3b"
BASELINE_BATCHES = (1, 2, 4, 8, 16, 32)
KERNELS = "products of 2020 on a V100 reached less than the catalogue's, and small kernels were not fused"
OURS: dict[str, Any] = {"framework": "megatron-deepspeed"}
"""Framework of the tutorial's GPT; its attention writes the scores to memory."""

PYTORCH: dict[str, Any] = {"framework": "pytorch", "fused_attention": False, "knob": "offload.has_buckets=true"}
"""Attention as of 2020 ([unstated] attention), and gradients once more in buckets."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Sizes from bytes, rates from lanes."""
    claims = {claim.id: claim for claim in paper.claims}
    one, many, node = (claims[k].setup for k in ("largest-one-gpu", "scaling-128", "largest-dgx-2"))
    yield from sizes(one)
    yield Prediction(
        claim="rate-10b",
        predicted=rate(claims["rate-10b"].setup, 1),
        because="gradients stream under the backward pass; one update on the host for 51 micro-batches",
        differs=KERNELS,
    )
    yield Prediction(
        claim="rate-pytorch",
        predicted=max(plain_rates(claims["rate-pytorch"].setup)),
        because="all on the device at the fastest micro-batch that fits",
        differs=KERNELS,
    )
    alone, together = rate(many, 1), rate(many, int(many.number("num_devices")))
    yield Prediction(
        claim="scaling-128",
        predicted=many.number("num_devices") * together / alone,
        because="link and host work shrink with the ranks; gathering parameters over the network is what is added",
    )
    yield Prediction(
        claim="rate-128", predicted=together, because="the same on 128 devices, four sequences each", differs=KERNELS
    )
    yield from node_sizes(node)
    delayed = claims["delayed-update"].setup
    times = [
        step_of(delayed, "zero-offload", knob=f"offload.is_delayed={word}", **OURS).step_time_s
        for word in ("false", "true")
    ]
    yield Prediction(
        claim="delayed-update",
        predicted=times[0] / times[1],
        because="10B, one micro-batch of 8 a step",
        differs="other sizes of the figure are in a table that is an image",
    )


def sizes(one: Setup) -> Iterator[Prediction]:
    """The largest models of one device with and without the host."""
    offloaded = largest_of(one, "zero-offload", **OURS)
    plain = largest_of(one, "all-on-device", **PYTORCH)
    yield Prediction(
        claim="largest-one-gpu",
        predicted=offloaded,
        because="two bytes a parameter, two layers' gradients and checkpoints on the device",
    )
    yield Prediction(
        claim="largest-one-gpu-pytorch",
        predicted=plain,
        because="16 bytes a parameter, gradients once more in buckets, and checkpoints",
        differs="fragmentation of the allocator and what the framework keeps beside are not counted",
    )
    yield Prediction(
        claim="largest-ratio",
        predicted=offloaded / plain,
        because="the two sizes above",
        differs="the plain system holds more here than reported",
    )


def node_sizes(node: Setup) -> Iterator[Prediction]:
    """The largest models of a node, cut over eight of its devices with states on the host, or over all without."""
    over = largest_on(node, "zero-offload", int(node.word("layout").removeprefix("tp")))
    under = largest_on(node, "all-on-device", int(node.number("num_devices_per_node")))
    yield Prediction(
        claim="largest-dgx-2", predicted=over, because="an eighth of the parameters a device; the host holds the states"
    )
    yield Prediction(
        claim="largest-dgx-2-ratio",
        predicted=over / under,
        because="16 bytes a parameter over 16 devices otherwise",
        differs="what the baseline keeps beside 16 bytes a parameter is not itemised in the text read",
    )


def shared_node(setup: Setup, devices: int) -> dict[str, Any]:
    """Devices of nodes whose host and links they share, as settings."""
    return {
        "devices": devices,
        "devices_per_node": int(setup.number("num_devices_per_node")),
        "devices_per_host_link": int(setup.number("num_devices_per_link")),
        **OURS,
    }


def rate(setup: Setup, ranks: int) -> float:
    """Flops a second a device; on many ranks each has its part of the total batch in one micro-batch."""
    total, micro = int(setup.number("num_global_batch")), int(setup.number("num_micro_batch"))
    if ranks == 1:
        whole = total // micro * micro
        return step_of(setup, "zero-offload", global_batch=whole, **OURS).model_flops_per_s_per_device
    given = shared_node(setup, ranks) | {"micro_batch": total // ranks, "global_batch": total}
    return step_of(setup, "zero-offload", **given).model_flops_per_s_per_device


def plain_rates(setup: Setup) -> Iterator[float]:
    """Flops a second of the largest plain model, for every micro-batch that fits."""
    total = int(setup.number("num_global_batch"))
    for batch in BASELINE_BATCHES:
        given = PYTORCH | {"model": BASELINE, "micro_batch": batch, "global_batch": total}
        found = answer_of(setup, "all-on-device", **given)
        yield 0.0 if isinstance(found, InfeasibleAnswer) else found.model_flops_per_s_per_device


def largest_on(setup: Setup, offload: str, tp: int) -> float:
    """Parameters on all devices of a node, ``tp`` of which cut every layer."""
    devices, micro = int(setup.number("num_devices")), int(setup.number("num_micro_batch"))
    given = shared_node(setup, devices) | {"tp": tp, "global_batch": micro * devices // tp}
    return largest_of(setup, offload, ALL_TIERS, **given)
