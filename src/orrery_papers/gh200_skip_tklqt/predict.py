"""Hosts and devices: a model's kernels through a launch queue, and the batch at which the device takes over."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict as kernel
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.launches import Queue, run
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.models.model import SoftmaxAttention

ENGINE, FORMAT, WORD_BYTES = "vllm", "bf16", 2.0
SYSTEMS = ("a100", "h100", "gh200")
TURN_RATIO = 2.0
"""Launch and queuing time over that of launches alone, from which the device counts as the slower."""

HOST = (
    "neither an operator's time on each host nor the length of inputs was found: slow hosts and short inputs turn later"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Prefill of the decoder at a large batch, then the turns of the encoder."""
    llama = paper.setups["llama"]
    batch = int(llama.number("num_batch"))
    for other in ("h100", "a100"):
        theirs, ours = (queue(llama, paper.setups[name], batch) for name in (other, "gh200"))
        yield Prediction(
            claim=f"prefill-{other}", predicted=theirs.latency_s / ours.latency_s,
            because=f"batch {batch}: {theirs.latency_s * 1e3:.2f} ms, {theirs.idle_frac:.0%} idle, against "
            f"{ours.latency_s * 1e3:.2f} ms, {ours.idle_frac:.0%} idle",
            differs="prompts, batch and the limits of power of these machines were not found",
        )  # fmt: skip
    encoder = paper.setups["encoder"]
    turns = {name: turn(encoder, paper.setups[name], encoder.numbers("batches_swept")) for name in SYSTEMS}
    words = ", ".join(f"{name} {batch:g}" for name, batch in turns.items())
    most = turns["gh200"] / min(turns["a100"], turns["h100"])
    yield Prediction(claim="turn-ratio", predicted=most, because=f"batches of the turn: {words}", differs=HOST)
    for name, at in turns.items():
        yield Prediction(claim=f"turn-{name}", predicted=at, because=f"batches of the turn: {words}", differs=HOST)


def turn(work: Setup, system: Setup, batches: Sequence[float]) -> float:
    """The first batch at which kernels queue; the last one tried where none does."""
    for batch in batches:
        found = queue(work, system, int(batch))
        if found.launch_and_queuing_s > TURN_RATIO * _launches_s(work, system):
            return batch
    return batches[-1]


def _launches_s(work: Setup, system: Setup) -> float:
    """Of all kernels, if none had to queue."""
    layers = sum(block.count for block in get_model(work.word("model")).blocks)
    return layers * work.number("num_layer_kernels") * system.number("kernel_launch_s")


def queue(work: Setup, system: Setup, batch: int) -> Queue:
    """All layers of the model, kernel by kernel."""
    seconds = kernels_s(work, get_device(system.word("device")), batch)
    return run(seconds, system.number("kernel_dispatch_s"), system.number("kernel_launch_s"))


def kernels_s(work: Setup, device: Device, batch: int) -> NDArray[np.float64]:
    """Products and attention, and the passes over activations dealt out evenly to the other kernels."""
    model, tokens = get_model(work.word("model")), int(work.number("input_tokens"))
    measured = calibration("add", device).constants
    every: list[NDArray[np.float64]] = []
    for block in model.blocks:
        mixer = block.mixer
        assert isinstance(mixer, SoftmaxAttention)
        products = [_product_s(batch * tokens, x.out_features, x.in_features, device) for x in block.linears]
        op = AttentionPrefill(
            batch=batch, query_tokens=tokens, context_tokens=tokens, num_heads=mixer.num_heads, format=FORMAT,
            num_kv_heads=mixer.num_kv_heads, head_size=mixer.head_size, kv_format=FORMAT, is_causal=mixer.is_causal,
        )  # fmt: skip
        busy = [*products, float(kernel(op, device, ENGINE).time_s)]
        moved = work.number("num_stream_passes") * batch * tokens * model.hidden_size * WORD_BYTES
        stream_s = moved / (measured["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s)
        others = int(work.number("num_layer_kernels")) - len(busy)
        layer = np.array([*busy, *([stream_s / others] * others)])
        every += [layer] * block.count
    return np.concatenate(every)


def _product_s(m: int, n: int, k: int, device: Device) -> float:
    return float(kernel(Gemm(m=m, n=n, k=k, format=FORMAT), device, ENGINE).time_s)
