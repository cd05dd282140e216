"""NVFP4 pre-training: days of a hybrid 12B model on B200 in three precisions, and one layer's gradients measured."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.units import percent
from orrery.catalog.frameworks import get_framework
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.numerics.draws import draw
from orrery.numerics.learning import linear
from orrery.numerics.learning.casts import random_hadamard
from orrery.numerics.learning.techniques.nvfp4_linear import Nvfp4Knobs
from orrery.numerics.quantise import round_trip
from orrery.numerics.rounding import Rounding
from orrery_papers.shared.tails import crest_factor
from orrery_papers.shared.trained import Trained, trained, training_device, training_layout

DAY_S = 86400.0
RECIPES = ("bf16", "fp8", "nvfp4")
BLOCK = 16
SMALL = 0.02
"""Size of most gradients of a block beside its largest: nearest rounding loses them."""

Floats = NDArray[Any]


def predict(paper: Paper) -> Iterator[Prediction]:
    """The planner's days, then one layer."""
    setup = paper.setups["12b"]
    runs = {recipe: run_of(setup, recipe) for recipe in RECIPES}
    model = runs["nvfp4"].job.model
    yield Prediction(claim="model-size", predicted=float(model.num_parameters), because="the model's published sizes")
    days = ", ".join(f"{recipe} {run_s(setup, run) / DAY_S:.1f}" for recipe, run in runs.items())
    text = f"days on {int(setup.number('num_devices'))} B200: {days}"
    for claim, recipe in (("faster-than-fp8", "fp8"), ("faster-than-bf16", "bf16")):
        yield Prediction(claim=claim, predicted=runs[recipe].step_s / runs["nvfp4"].step_s, because=text)
    yield from layer(paper.setups["layer"])


def run_of(setup: Setup, recipe: str) -> Trained:
    """One step of the set-up in a precision."""
    device, devices = training_device(setup), int(setup.number("num_devices"))
    precision = get_recipe(recipe)
    job = TrainingJob(
        model=hybrid(setup),
        recipe=precision,
        framework=get_framework(setup.word("engine"), device, precision.name),
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=int(setup.number("num_devices_per_node"))),
        seq_len=int(setup.number("sequence_tokens")),
        global_batch=int(setup.number("num_global_batch")),
    )
    return trained(job, training_layout(setup, devices))


def run_s(setup: Setup, run: Trained) -> float:
    """Seconds until all tokens are seen."""
    return setup.number("num_training_tokens") / run.job.tokens_per_step * run.step_s


def hybrid(setup: Setup) -> Model:
    """The set-up's mixture of recurrent, attention and feed-forward layers."""
    lines = {
        "num_hidden_layers": "num_layers",
        "hidden_size": "num_hidden",
        "intermediate_size": "num_ffn_features",
        "num_attention_heads": "num_heads",
        "num_key_value_heads": "num_kv_heads",
        "attention_head_dim": "num_head_features",
        "mamba_num_heads": "num_mixer_heads",
        "mamba_head_dim": "num_mixer_head_features",
        "ssm_state_size": "num_state_features",
        "vocab_size": "num_vocabulary",
        "max_position_embeddings": "sequence_tokens",
    }
    config: dict[str, Any] = {key: int(setup.number(line)) for key, line in lines.items()}
    fixed = {"model_type": "nemotron_h", "n_groups": 8, "conv_kernel": 4, "expand": 2, "tie_word_embeddings": False}
    return parse(config | fixed | {"hybrid_override_pattern": setup.word("layer_pattern")}, name=setup.name)


def layer(setup: Setup) -> Iterator[Prediction]:
    """Gradients and weights of one layer."""
    width, tokens, repeats = (int(setup.number(key)) for key in ("num_hidden", "num_batch", "num_answers"))
    x, w = draw("outliers", (tokens, width), 1), draw("weights", (width, width), 2)
    dy = draw("normal", (tokens, width), 3) * np.where(np.arange(width) % BLOCK == 0, 1.0, SMALL).astype(np.float32)
    biases = {how: bias(x, w, dy, how, repeats) for how in (Rounding.STOCHASTIC, Rounding.NEAREST_EVEN)}
    stochastic, nearest = biases.values()
    because = f"{repeats} backward passes: off by {stochastic:.3f} of the gradient's size, to nearest {nearest:.3f}"
    yield Prediction(claim="gradient-bias", predicted=stochastic, because=because)
    yield Prediction(claim="bias-of-nearest", predicted=nearest / stochastic, because=because)
    dy = draw("normal", (tokens, width), 4) * np.exp(1.5 * draw("normal", (tokens, 1), 5))
    without, rotated = (crest(dy.T, block) for block in (0, BLOCK))
    errors = [weight_gradient_error(x, w, dy, block) for block in (0, BLOCK)]
    yield Prediction(
        claim="rotation-bounds-outliers",
        predicted=without / rotated,
        because=f"crest factor {without:.2f} without, {rotated:.2f} with the transform, some tokens being much larger "
        f"(the weight gradient errs by {errors[0]:.3f} and {errors[1]:.3f}: these floats stand outliers)",
    )
    word = Nvfp4Knobs().weights
    differ, along = mismatch_frac(w, word), mismatch_frac(w, "nvfp4")
    yield Prediction(
        claim="same-weights", predicted=differ, because=f"square scales; {percent(along)} with scales along rows"
    )
    blocks = x.reshape(-1, BLOCK)
    error = np.abs(round_trip(x, "nvfp4").reshape(-1, BLOCK) - blocks).max(axis=1) / np.abs(blocks).max(axis=1)
    yield Prediction(
        claim="block-error", predicted=float(error.max()), because="the worst of all blocks of activations"
    )


def bias(x: Floats, w: Floats, dy: Floats, rounding: Rounding, repeats: int) -> float:
    """Distance of the mean input gradient from that of exact gradients and the same weights, over its size."""
    rule, rng = linear("nvfp4-linear", gradient_rounding=rounding), np.random.default_rng(6)
    saved = rule.forward(x, w, rng)[1]
    exact = dy @ round_trip(w.T, Nvfp4Knobs().weights).T
    mean = np.mean([rule.backward(saved, dy, rng)[0] for _ in range(repeats)], axis=0)
    return float(np.linalg.norm(mean - exact) / np.linalg.norm(exact))


def mismatch_frac(w: Floats, word: str) -> float:
    """Share of weights that differ when they are rounded in the other direction."""
    return float(np.count_nonzero(round_trip(w, word) != round_trip(w.T, word).T)) / w.size


def crest(a: Floats, hadamard: int) -> float:
    """The mean crest factor of blocks of 16, after the transform where one is asked for."""
    mixed, _ = random_hadamard(hadamard)(a, a, np.random.default_rng(8))
    return float(crest_factor(mixed.reshape(-1, BLOCK)).mean())


def weight_gradient_error(x: Floats, w: Floats, dy: Floats, hadamard: int) -> float:
    """Relative error of one weight gradient, rounded to nearest so that only the transform counts."""
    rule = linear("nvfp4-linear", hadamard_elements=hadamard, gradient_rounding=Rounding.NEAREST_EVEN)
    rng = np.random.default_rng(7)
    found = rule.backward(rule.forward(x, w, rng)[1], dy, rng)[1]
    exact = dy.T @ x
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
