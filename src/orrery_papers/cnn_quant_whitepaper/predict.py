"""Quantizing convolutional networks: integers after and while training on a perceptron, bytes, and vector products."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.parse import parse_format
from orrery.scenario.experiment import run_experiment


def predict(paper: Paper) -> Iterator[Prediction]:
    """Bytes from the formats, orders from a perceptron, speed from products a second."""
    networks = paper.setups["networks"]
    word = f"int{int(networks.number('num_weight_bits'))}/row"
    yield Prediction(
        claim="size",
        predicted=parse_format("fp32").bytes_per_element / parse_format(word).bytes_per_element,
        because="32 bits over 8; scales of channels are not counted",
    )
    rows = run_experiment("integer-inference", steps=int(networks.number("num_steps"))).rows
    loss = {(r["weights"], r.get("scale"), r["rounded"]): float(r["loss"]) for r in rows}
    float_loss = loss["fp32", None, "never"]
    pairs = {
        "channels-over-tensors": (("int8", "tensor", "after training"), ("int8", "row", "after training")),
        "training-on": (("int8", "row", "after training"), ("int8", "row", "while training")),
        "four-bits-need-it": (("int4", "row", "after training"), ("int4", "row", "while training")),
    }
    for claim, (worse, better) in pairs.items():
        yield Prediction(
            claim=claim,
            predicted=loss[worse] / loss[better],
            because=f"loss {loss[worse]:.3g} against {loss[better]:.3g}, in floating point {float_loss:.3g}",
        )
    base = products_per_s(paper.setups["cpu"])
    for claim, name in (("cpu-speedup", "cpu-int8"), ("dsp-speedup", "dsp")):
        yield Prediction(
            claim=claim,
            predicted=products_per_s(paper.setups[name]) / base,
            because="byte products a second over FP32 products a second, all vector units busy",
            differs="memory, which bytes relieve fourfold, and layers that are no products are not counted",
        )


def products_per_s(setup: Setup) -> float:
    """Products per second of one core or one processor of vectors."""
    return setup.number("num_vector_products") * setup.number("num_vector_units") * setup.number("core_clock_hz")
