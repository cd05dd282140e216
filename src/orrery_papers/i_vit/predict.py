"""I-ViT: a vision transformer's kernels in FP32, and with four byte products where one FP32 product stood."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.device import Device
from orrery.kernels.ops import Elementwise, Gemm, Op

FORMAT = "fp32"
WORDS_OF_FP32 = 2  # the element-wise rule counts 16-bit words
PRODUCTS_PER_WORD = 4  # bytes in 32 bits


def predict(paper: Paper) -> Iterator[Prediction]:
    """The geometric mean over the models."""
    gains = {name: gain(setup) for name, setup in paper.setups.items()}
    yield Prediction(
        claim="speedup",
        predicted=prod(gains.values()) ** (1.0 / len(gains)),
        because=", ".join(f"{name} {found:.2f}" for name, found in gains.items())
        + ": the same kernels with four products an instruction and a quarter of the bytes",
        differs="launches that do not shrink, and kernels that TVM tunes for each format by itself",
    )


def gain(setup: Setup) -> float:
    """Time of the FP32 model over that of the integer one."""
    device = get_device(setup.word("device"))
    ops = list(graph(setup))
    return _time_s(ops, device) / _time_s(ops, integer_units(device))


def integer_units(device: Device) -> Device:
    """The device as byte-wide integer code sees it: dot products of four at the FP32 rate, four elements a word."""
    return replace(
        device,
        dense_flops_per_s={FORMAT: PRODUCTS_PER_WORD * device.dense_flops_per_s[FORMAT]},
        memory_bandwidth_bytes_per_s=PRODUCTS_PER_WORD * device.memory_bandwidth_bytes_per_s,
        last_level_cache_bytes=PRODUCTS_PER_WORD * device.last_level_cache_bytes,
    )


def graph(setup: Setup) -> Iterator[tuple[int, Op]]:
    """Every kernel and how often it runs; activations are fused with the products before them."""
    batch, length, layers = (int(setup.number(n)) for n in ("num_batch", "sequence_tokens", "num_layers"))
    width, heads, ffn = (int(setup.number(n)) for n in ("num_hidden", "num_heads", "num_ffn_features"))
    rows, size = batch * length, width // heads
    for n, k in ((3 * width, width), (width, width), (ffn, width), (width, ffn)):
        yield layers, Gemm(m=rows, n=n, k=k, format=FORMAT, quantises_input=False)
    for n, k in ((length, size), (size, length)):
        yield layers, Gemm(m=length, n=n, k=k, batch=batch * heads, format=FORMAT, quantises_input=False)
    yield layers, Elementwise(kind="softmax", tokens=batch * heads * length, width=WORDS_OF_FP32 * length)
    yield 2 * layers + 1, Elementwise(kind="norm", tokens=rows, width=WORDS_OF_FP32 * width)
    yield 2 * layers, Elementwise(kind="add", tokens=rows, width=WORDS_OF_FP32 * width)


def _time_s(ops: list[tuple[int, Op]], device: Device) -> float:
    return sum(count * float(kernels.predict(op, device).time_s) for count, op in ops)
