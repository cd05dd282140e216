"""Hosts and devices: a model's kernels through a launch queue, and the batch at which the device takes over."""

from collections.abc import Iterator, Sequence

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.eager_layers import EagerLayer, kernels_s
from orrery.kernels.launches import Queue, is_queuing, run

ENGINE = "vllm"
SYSTEMS = ("a100", "h100", "gh200")

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
            claim=f"prefill-{other}",
            predicted=theirs.latency_s / ours.latency_s,
            because=f"batch {batch}: {theirs.latency_s * 1e3:.2f} ms, {theirs.idle_frac:.0%} idle, against "
            f"{ours.latency_s * 1e3:.2f} ms, {ours.idle_frac:.0%} idle",
            differs="prompts, batch and the limits of power of these machines were not found",
        )
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
        layers = sum(block.count for block in get_model(work.word("model")).blocks)
        kernels = layers * int(work.number("num_layer_kernels"))
        if is_queuing(queue(work, system, int(batch)), kernels, system.number("kernel_launch_s")):
            return batch
    return batches[-1]


def queue(work: Setup, system: Setup, batch: int) -> Queue:
    """All layers of the model, kernel by kernel."""
    layer = EagerLayer(
        num_kernels=int(work.number("num_layer_kernels")), num_stream_passes=work.number("num_stream_passes")
    )
    device, model = get_device(system.word("device")), get_model(work.word("model"))
    seconds = kernels_s(model, device, batch, int(work.number("input_tokens")), layer, ENGINE)
    return run(seconds, system.number("kernel_dispatch_s"), system.number("kernel_launch_s"))
