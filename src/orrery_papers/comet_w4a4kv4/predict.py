"""COMET: mixed four- and eight-bit products against 16 bits, and serving against four-bit weights alone."""

from collections.abc import Iterator

from orrery.base.errors import FactError
from orrery.base.units import percent
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import Model
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs, clustered_order, wide_blocks
from orrery.numerics.draws import draw
from orrery.scenario.ask import Answer
from orrery.scenario.estimates import estimate
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.layer_costs import geometric_mean, linear_shapes, over_linears, words

WEIGHTS, ACTIVATIONS = "int4", "int4+int8"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Kernels over models and batches, serving over models at the largest batch, and bits of an activation."""
    setup = paper.setups["a100"]
    models = [get_model(name) for name in words(setup.word("models"))]
    share = {k: wide_frac(setup, k) for model in models for _, k, _ in linear_shapes(model)}
    mean = sum(share.values()) / len(share)
    kernels = [kernel_ratio(setup, model, int(m), share) for model in models for m in setup.numbers("batches_swept")]
    yield Prediction(
        claim="kernel",
        predicted=geometric_mean(kernels),
        because=f"{percent(mean, 1)} of the blocks keep eight bits; {min(kernels):.2f} to {max(kernels):.2f} by case",
        differs="small batches are bound by weights, of which four bits are a quarter, and fewer of the paper's may be "
        "small; outliers here are drawn and fill fewer blocks than real ones may",
    )
    served = [throughput(setup, model, mean) / throughput(setup, model) for model in models]
    yield Prediction(
        claim="throughput",
        predicted=geometric_mean(served),
        because="as many sequences as the cache holds, of four bits or sixteen: "
        + ", ".join(f"{model.name.split('/')[-1]} {ratio:.2f}" for model, ratio in zip(models, served, strict=True)),
        differs="the engine's host work and its norms are the same on both sides; which of its formats the baseline "
        "has is not known",
    )
    yield Prediction(
        claim="bits",
        predicted=4.0 + 4.0 * mean,
        because="mean bits of an activation over blocks; weights and cache: four",
    )


def wide_frac(setup: Setup, channels: int) -> float:
    """Share of eight-bit blocks of drawn activations, channels sorted."""
    knobs = BlockKnobs(block_elements=int(setup.number("num_block_elements")))
    x = draw(setup.word("dataset"), (int(setup.number("num_scored_tokens")), channels), 0)
    return float(wide_blocks(x[:, clustered_order(x, knobs)], knobs).mean())


def kernel_ratio(setup: Setup, model: Model, m: int, share: dict[int, float]) -> float:
    """16-bit products over mixed ones, of all linear layers: ``orrery kernel gemm``."""

    def time_s(n: int, k: int, variant: str) -> float:
        formats = {"weights": WEIGHTS, "activations": ACTIVATIONS, "wide_frac": share[k]}
        return kernel_rows("gemm", device=setup.word("device"), m=m, n=n, k=k, **formats)[variant].time_s

    wide_s, mixed_s = (over_linears(model, lambda n, k, v=v: time_s(n, k, v)) for v in ("sixteen-bit", "even"))
    return wide_s / mixed_s


def throughput(setup: Setup, model: Model, wide_frac: float | None = None) -> float:
    """Answer tokens a second: ``orrery estimate`` with activations of two widths and a four-bit cache, or with four-bit
    weights alone."""
    mixed = {"activations": ACTIVATIONS, "wide_frac": wide_frac, "kv": "int4"}
    found = estimate(
        model=model.name,
        device=setup.word("device"),
        engine=setup.word("engine"),
        weights=WEIGHTS,
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=int(setup.number("output_tokens")),
        concurrency=int(setup.number("max_num_seqs")),
        **(mixed if wide_frac is not None else {"kv": "fp16"}),
    )
    if not isinstance(found, Answer):
        raise FactError(f"setup {setup.name}: {found}; state one that fits.")
    return found.estimate.output_tokens_per_s
