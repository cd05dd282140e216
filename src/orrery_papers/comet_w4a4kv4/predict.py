"""COMET: mixed four- and eight-bit products against 16 bits, and serving against four-bit weights alone."""

from collections.abc import Callable, Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict as predict_op
from orrery.kernels.lowbit.mixed_blocks import MixedGemm, mixed_gemm_s
from orrery.kernels.lowbit.packed import plain_gemm_s
from orrery.kernels.ops import Gemm
from orrery.models.model import Model
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs, clustered_order, wide_blocks
from orrery.numerics.draws import draw
from orrery.numerics.registry import get_format
from orrery_papers.shared.layer_costs import decode_attention_s, geometric_mean, linear_shapes, over_linears, words

CACHE, BASELINE_CACHE = "int4_weight_only", "fp16"
BASELINE_WEIGHTS = "int4_weight_only"
USABLE_FRAC = 0.9
"""Share of device memory for weights and cache: what serving engines take by default."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Kernels over models and batches, serving over models at the largest batch, and bits of an activation."""
    setup = paper.setups["a100"]
    device, models = get_device(setup.word("device")), [get_model(name) for name in words(setup.word("models"))]
    share = {k: wide_frac(setup, k) for model in models for _, k, _ in linear_shapes(model)}
    mean = sum(share.values()) / len(share)
    kernels = [kernel_ratio(model, int(m), device, share) for model in models for m in setup.numbers("batches_swept")]
    yield Prediction(
        claim="kernel",
        predicted=geometric_mean(kernels),
        because=f"{mean:.1%} of the blocks keep eight bits; {min(kernels):.2f} to {max(kernels):.2f} by case",
        differs="small batches are bound by weights, of which four bits are a quarter, and fewer of the paper's may be "
        "small; outliers here are drawn and fill fewer blocks than real ones may",
    )
    served = [throughput(setup, model, device, share) / baseline(setup, model, device) for model in models]
    yield Prediction(
        claim="throughput",
        predicted=geometric_mean(served),
        because="the largest batches, with a cache of four bits or sixteen: "
        + ", ".join(f"{model.name.split('/')[-1]} {ratio:.2f}" for model, ratio in zip(models, served, strict=True)),
        differs="norms, sampling and the host, alike for both, are left out",
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


def linears_s(model: Model, m: int, device: Device, share: dict[int, float]) -> float:
    """All linear layers in mixed blocks."""
    return over_linears(model, lambda n, k: mixed_gemm_s(MixedGemm(m=m, n=n, k=k, wide_frac=share[k]), device))


def kernel_ratio(model: Model, m: int, device: Device, share: dict[int, float]) -> float:
    """16-bit products over mixed ones."""
    return over_linears(model, lambda n, k: float(plain_gemm_s(m, n, k, device))) / linears_s(model, m, device, share)


def throughput(setup: Setup, model: Model, device: Device, share: dict[int, float]) -> float:
    """Answer tokens a second of the paper's system."""
    return served(setup, model, device, CACHE, lambda m: linears_s(model, m, device, share))


def baseline(setup: Setup, model: Model, device: Device) -> float:
    """The same with four-bit weights, and all else in sixteen."""

    def linears(m: int) -> float:
        def one_s(n: int, k: int) -> float:
            return float(predict_op(Gemm(m=m, n=n, k=k, format=BASELINE_WEIGHTS), device).time_s)

        return over_linears(model, one_s)

    return served(setup, model, device, BASELINE_CACHE, linears)


def served(setup: Setup, model: Model, device: Device, cache: str, linears_s: Callable[[int], float]) -> float:
    """Answer tokens a second at the largest batch that fits: prompts, then a step a token at the mean context."""
    prompt, answer = int(setup.number("input_tokens")), int(setup.number("output_tokens"))
    batch = min(largest_batch(model, device, cache, prompt + answer), int(setup.number("max_num_seqs")))
    context = prompt + answer // 2
    head = float(plain_gemm_s(batch, model.vocab_size, model.hidden_size, device))
    step = linears_s(batch) + decode_attention_s(model, device, batch, context, cache) + head
    return batch * answer / (answer * step + linears_s(batch * prompt))


def largest_batch(model: Model, device: Device, cache: str, tokens: int) -> int:
    """Sequences whose whole cache fits beside four-bit weights and a 16-bit head and embedding."""
    linear = sum(n * k * count for n, k, count in linear_shapes(model))
    weights = linear * get_format(BASELINE_WEIGHTS).bytes_per_element + (model.num_parameters - linear) * 2.0
    each = sum(b.count * b.mixer.cache_elements_per_token for b in model.blocks if b.mixer)
    held = each * get_format(cache).bytes_per_element * tokens
    return max(1, int((USABLE_FRAC * device.memory_capacity_bytes - weights) / held))
