"""TPI-LLM: a model cut over home devices and streamed in a window, against one device that reads on demand."""

from collections.abc import Callable, Iterator

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.edge.weight_window import WeightBlock, first_and_later_s, peak_bytes
from orrery.models.model import Model
from orrery.network.home import ring_s, star_s

HELD_BYTES, FILE_BYTES = 4.0, 2.0
"""Bytes of one number: FP32 in memory, 16 bits in its file."""

ASSUMED = "drives, processors and the prompt are assumed"
PEAK = "the window of the measured run, and buffers of the framework that are not counted"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Times against reading on demand, then memory."""
    setup = {claim.id: claim.setup for claim in paper.claims}
    small = setup["latency"]
    (_, ours), (_, alone) = tensor_parallel(small), on_demand(small)
    yield Prediction(
        claim="latency",
        predicted=1.0 - ours / alone,
        differs=ASSUMED,
        because=f"{small.number('num_devices'):.0f} devices {ours:.1f} s a token, one on demand {alone:.1f} s",
    )
    (ours_first, _), (alone_first, _) = tensor_parallel(small, is_prompt=True), on_demand(small, is_prompt=True)
    yield Prediction(
        claim="ttft",
        predicted=1.0 - ours_first / alone_first,
        differs=f"sums of a whole prompt pass one home link, whose rate is assumed; {ASSUMED}",
        because=f"{ours_first:.1f} s to the first token against {alone_first:.1f} s",
    )
    star, ring = (sum_s(small, how) for how in (star_s, ring_s))
    yield Prediction(
        claim="star",
        predicted=ring / star,
        because=f"{star * 1e3:.1f} ms through one device, {ring * 1e3:.1f} ms round",
    )
    yield Prediction(claim="accelerate-token", predicted=alone, differs=ASSUMED, because="all weights, one by one")
    yield Prediction(claim="token", predicted=ours, differs=ASSUMED, because="an eighth of the weights, in a window")
    large = setup["peak"]
    window, runtime = int(large.number("num_window_blocks")), large.number("runtime_bytes")
    parts = blocks(large, int(large.number("num_devices")), tokens=1)
    peak, whole = peak_bytes(parts, window) + runtime, sum(b.held_bytes for b in parts) + runtime
    yield Prediction(
        claim="peak",
        predicted=peak,
        differs=PEAK,
        because=f"the head in {parts[-1].held_bytes / 1e9:.2f} GB, half as much again while it is read, and a "
        "feed-forward part",
    )
    yield Prediction(
        claim="peak-reduction",
        predicted=1.0 - peak / whole,
        differs=PEAK,
        because=f"{peak / 1e9:.1f} GB instead of {whole / 1e9:.1f} GB",
    )


def tensor_parallel(setup: Setup, *, is_prompt: bool = False) -> tuple[float, float]:
    """The first pass and a later one of devices that share every layer."""
    tokens = setup.number("input_tokens") if is_prompt else 1.0
    window = int(setup.number("num_window_blocks"))
    return first_and_later_s(blocks(setup, int(setup.number("num_devices")), tokens), window)


def on_demand(setup: Setup, *, is_prompt: bool = False) -> tuple[float, float]:
    """The same of one device that keeps nothing."""
    tokens = setup.number("input_tokens") if is_prompt else 1.0
    return first_and_later_s(blocks(setup, 1, tokens), 1)


def blocks(setup: Setup, num_devices: int, tokens: float) -> tuple[WeightBlock, ...]:
    """Embedding, attention and feed-forward parts in turn, head: one device's share of each.

    Embedding and head stay whole with the device that was asked, and an embedding looks up rows.
    """
    model = get_model(setup.word("model"))
    ends = float(model.embedding_parameters), float(model.head.num_parameters if model.head else 0)
    exchange = sum_s(setup, star_s, num_devices, tokens)
    inner = (_block(setup, parameters / num_devices, tokens, exchange) for parameters in _parts(model))
    return (_block(setup, ends[0], 0.0, 0.0), *inner, _block(setup, ends[1], 1.0, 0.0))


def sum_s(
    setup: Setup, how: Callable[[int, float, float, float], float], num_devices: int = 0, tokens: float = 1.0
) -> float:
    """Sums of one layer's part for so many tokens over the set-up's network."""
    message = tokens * get_model(setup.word("model")).hidden_size * HELD_BYTES
    devices = num_devices or int(setup.number("num_devices"))
    return how(devices, message, setup.number("way_s"), setup.number("link_bytes_per_s"))


def _parts(model: Model) -> Iterator[float]:
    """Parameters of attention and feed-forward part of each layer."""
    for block in model.blocks:
        for _ in range(block.count):
            for role in ("attention", "mlp"):
                yield float(sum(x.num_parameters for x in block.linears if x.role == role))


def _block(setup: Setup, parameters: float, tokens: float, exchange_s: float) -> WeightBlock:
    held = parameters * HELD_BYTES
    arithmetic = 2.0 * parameters * tokens / setup.number("device_flops_per_s")
    read = held / setup.number("memory_bytes_per_s") if tokens else 0.0
    return WeightBlock(
        held_bytes=held,
        copied_bytes=parameters * FILE_BYTES,
        load_s=parameters * FILE_BYTES / setup.number("nvme_read_bytes_per_s"),
        busy_s=max(arithmetic, read) + exchange_s,
    )
