"""MR-GPTQ: errors of rotated and compensated FP4 on drawn layers; times of FP4 products and of whole prefills."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.layout import OnlineRotation
from orrery.execution.memory import Infeasible
from orrery.execution.online_rotation import rotated
from orrery.kernels import predict as kernel_time
from orrery.kernels.ops import Gemm
from orrery.numerics.parse import parse_format
from orrery.numerics.recipes.prepare import Recipe
from orrery.numerics.recipes.techniques.hadamard import Hadamard
from orrery.numerics.recipes.techniques.mr_gptq import MicroRotated
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload
from orrery_papers.shared.drawn_layer import drawn_layer, mean_error
from orrery_papers.shared.setup import deployment

Floats = NDArray[np.float64]

SLOWER = (
    "products of 16 bits come out faster beside those of four than the authors measured: our rule follows other kernels"
)
PREFILL = "which model, batch and length the paper's ratio is of is not stated; all other kernels are as in the engine"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Ratios of time on both devices, then the order of errors."""
    tensors = paper.setups["tensors"]
    widths = {parse_format(name).element_bits for name in _formats(tensors)}
    yield Prediction(claim="format-width", predicted=max(widths), because="the bits of one element, without its scale")
    for device in ("b200", "rtx-5090"):
        best, batch = fastest_product(paper.setups[f"{device}-layer"])
        yield Prediction(
            claim=f"layer-{device}",
            predicted=best,
            differs=SLOWER,
            because=f"at {batch} tokens, activations rotated, rounded and multiplied",
        )
        ratio, batch = fastest_prefill(paper.setups[f"{device}-model"])
        yield Prediction(
            claim=f"model-{device}", predicted=ratio, because=f"prompts of a batch of {batch}", differs=PREFILL
        )
    yield from _errors(tensors)


def _errors(setup: Setup) -> Iterator[Prediction]:
    errors = {name: drawn_errors(setup, name) for name in _formats(setup)}
    for name, found in errors.items():
        yield Prediction(
            claim=f"{name}-rotated",
            predicted=found["rotated"] / found["nearest"],
            because=f"relative error of the output {found['nearest']:.4f} to nearest, {found['rotated']:.4f} rotated, "
            f"{found['mr-gptq']:.4f} with all of MR-GPTQ",
        )
    before, after = (errors["mxfp4"][what] / errors["nvfp4"][what] for what in ("nearest", "mr-gptq"))
    yield Prediction(
        claim="gap",
        predicted=after / before,
        because=f"MXFP4's error is {before:.2f} times NVFP4's to nearest and {after:.2f} times with MR-GPTQ",
    )


def drawn_errors(setup: Setup, format: str) -> Mapping[str, float]:
    """Relative errors of the output, weights and activations in ``format``, mean over drawn layers."""
    width, block = int(setup.number("num_hidden")), int(setup.number("num_rotated_channels"))
    tokens = int(setup.number("num_calibration_tokens"))
    layers = [drawn_layer(seed, width=width, num_outputs=width // 2, num_tokens=tokens) for seed in range(2)]
    recipes: dict[str, Recipe] = {
        "nearest": "round-to-nearest",
        "rotated": ("hadamard", Hadamard(block_channels=block)),
        "mr-gptq": ("mr-gptq", MicroRotated(block_channels=block)),
    }
    return {name: mean_error(layers, format, format, [recipe]) for name, recipe in recipes.items()}


def fastest_product(setup: Setup) -> tuple[float, int]:
    """The largest ratio of a 16-bit product's time over that of rotation and product in four bits, and where."""
    device, format = get_device(setup.word("device")), setup.word("weights_format")
    batches = np.array(setup.numbers("batches_swept"), dtype=np.int64)
    rotation = rotation_of(setup)
    best = (0.0, 0)
    for product in setup.word("products_swept").split(","):
        k, n = (int(side) for side in product.split("x"))
        wide, narrow = (
            np.asarray(
                kernel_time(Gemm(m=batches, n=n, k=k, format=name, is_cold=False, quantises_input=False), device).time_s
            )
            for name in ("bf16", format)
        )
        turned = rotated(rotation, batches, k, format, device)
        ratios: Floats = wide / (narrow + turned.time_s)
        at = int(ratios.argmax())
        best = max(best, (float(ratios[at]), int(batches[at])))
    return best


def fastest_prefill(setup: Setup) -> tuple[float, int]:
    """The largest ratio of prefill times, and the batch where it is."""
    wide = replace(setup, inputs={k: v for k, v in setup.inputs.items() if k != "weights_format"})
    best = (0.0, 0)
    for batch in map(int, setup.numbers("batches_swept")):
        work = Workload(
            mode="static", batch_size=batch, input_tokens=int(setup.number("input_tokens")), output_tokens=1
        )
        ours = replace(deployment(setup, engine=setup.word("baseline_engine")), online_rotation=rotation_of(setup))
        times = [estimate(d, work) for d in (deployment(wide, engine=setup.word("baseline_engine")), ours)]
        if not any(isinstance(run, Infeasible) for run in times):
            base, narrow = (run.ttft_s for run in times if not isinstance(run, Infeasible))
            best = max(best, (base / narrow, batch))
    return best


def rotation_of(setup: Setup) -> OnlineRotation:
    """The blocks that turn before each product."""
    return OnlineRotation(block_features=int(setup.number("num_rotated_channels")))


def _formats(setup: Setup) -> list[str]:
    return [name.strip() for name in setup.word("formats_swept").split(",")]
