"""Quartet: one layer's forward error and gradient bias, and the law's best choice where FP4 products are faster."""

from collections.abc import Iterator

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.draws import draw
from orrery.numerics.laws.quartet import CHOICES, Trial, known_method, least_tokens
from orrery.numerics.learning import linear
from orrery.numerics.learning.techniques.quartet_linear import QuartetKnobs, project
from orrery.numerics.quantise import round_trip
from orrery.numerics.rotations.hadamard import inverse

NUM_NORMAL = 1 << 20


def predict(paper: Paper) -> Iterator[Prediction]:
    """The law, then the layer."""
    yield best(paper.setups["law"])
    yield from forward(paper.setups["layer"])
    yield backward(paper.setups["layer"])


def forward(setup: Setup) -> Iterator[Prediction]:
    """Errors on normal data of sizes that fill an octave, so that no power of two is favoured."""
    block = int(setup.number("num_block_elements"))
    sizes = np.exp2(np.linspace(0.0, 1.0, NUM_NORMAL // block, endpoint=False))[:, None]
    x = draw("normal", (len(sizes), block), 1)
    near, retained = project((x * sizes).astype(np.float32), QuartetKnobs().clip_ratio)
    largest = round_trip(x * sizes, "mxfp4")
    ours, theirs = (float(np.mean((y / sizes - x) ** 2)) for y in (near, largest))
    yield Prediction(
        claim="forward-error",
        predicted=theirs / ours,
        because=f"{ours:.4f} of the variance is lost, {theirs:.4f} with scales from the largest element",
        differs="a power of two can be far from the wanted scale; over an octave of sizes that costs what it gains",
    )
    yield Prediction(claim="clipped", predicted=float(np.mean(1.0 - retained)), because="share of normal data beyond 6")


def backward(setup: Setup) -> Prediction:
    """The mean of many input gradients, on activations with outliers."""
    width, tokens, repeats = (int(setup.number(key)) for key in ("num_hidden", "num_batch", "num_answers"))
    x, w, dy = (
        draw("outliers", (tokens, width), 2),
        draw("weights", (width, width), 3),
        draw("normal", (tokens, width), 4),
    )
    rule, rng = linear("quartet-linear"), np.random.default_rng(5)
    saved = rule.forward(x, w, rng)[1]
    _, x_kept, w_near, _ = saved
    exact = inverse((dy @ w_near) * x_kept, int(setup.number("num_block_elements")))
    samples = [rule.backward(saved, dy, rng)[0] for _ in range(repeats)]
    size = float(np.linalg.norm(exact))
    off, one = (float(np.linalg.norm(found - exact)) / size for found in (np.mean(samples, axis=0), samples[0]))
    return Prediction(
        claim="gradient-bias",
        predicted=off,
        because=f"{repeats} backward passes: one is off by {one:.3f} of the gradient's size, their mean by {off:.3f}, "
        f"where noise alone leaves {one / repeats**0.5:.3f}",
    )


def best(setup: Setup) -> Prediction:
    """The best choice of widths for the time of FP8, FP4 products being as much faster as the device's peaks say."""
    peaks = get_device(setup.word("device")).dense_flops_per_s
    size, tokens = setup.number("num_parameters"), setup.number("num_training_tokens")
    trials = [
        Trial(
            choice=choice,
            num_parameters=size,
            num_tokens=tokens,
            fp4_ratio=peaks["fp4"] / peaks["fp8"],
            method=known_method(),
            is_resized=True,
        )
        for choice in CHOICES
    ]
    losses = {str(trial.choice): trial.loss for trial in trials}
    eight, four = trials[0].loss, trials[-1].loss
    text = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
    first, _ = least_tokens(size, trials[0].fp4_ratio, known_method(), is_resized=True)
    return Prediction(
        claim="fp4-beats-fp8",
        predicted=eight / four,
        because=f"nats a token: {text}; FP4 both ways wins from {first / size:.0f} tokens a parameter on",
    )
