"""FlightLLM: compressed weights that stream through an FPGA, against a GPU with one request."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.streamed import Compressed, StreamEngine, token_s
from orrery.models.model import Model, SoftmaxAttention
from orrery.serving.estimate import Estimate
from orrery_papers.shared.estimated import run_of
from orrery_papers.shared.setup import deployment

PARTS = {"q": 0, "k": 1, "v": 2}
"""Thirds of a fused projection."""
WIDTHS = (
    "the demo's profiler divides all its times by 3.2; with 8 bits a weight its bytes alone take longer than it says"
)
DIFFERS = "widths of weights, pruning, prices and power: what the authors released and what they report differ"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Against the A100 first, for the sweep; then a joule and a dollar; then the released runs."""
    claims = {claim.id: claim for claim in paper.claims}
    large, small = claims["throughput"].setup, claims["energy"].setup
    ours, gpu = tokens_per_s(large), gpu_run(large)
    yield Prediction(
        claim="throughput",
        predicted=ours / gpu.output_tokens_per_s,
        because=f"{ours:.4g} tokens/s from {moved_bytes(large) / 1e9:.3g} GB a token; "
        f"the GPU {gpu.output_tokens_per_s:.4g}",
        differs=WIDTHS,
    )
    ours, gpu = tokens_per_s(small), gpu_run(small)
    each, theirs = ours / small.number("board_w"), gpu.output_tokens_per_s / gpu.power_w
    yield Prediction(
        claim="energy",
        predicted=each / theirs,
        because=f"{ours:.4g} tokens/s at {small.number('board_w'):g} W; "
        f"the GPU {gpu.output_tokens_per_s:.4g} at {gpu.power_w:.4g} W",
        differs=DIFFERS,
    )
    paid = small.number("baseline_usd") / small.number("board_usd")
    yield Prediction(
        claim="cost",
        predicted=ours / gpu.output_tokens_per_s * paid,
        because=f"speeds of {ours:.4g} and {gpu.output_tokens_per_s:.4g}, prices of 1 to {paid:g}",
        differs=DIFFERS,
    )
    for claim in ("vhk158-tokens", "vhk158-tokens-long"):
        found = tokens_per_s(claims[claim].setup)
        yield Prediction(
            claim=claim, predicted=found, because="prompt by the multipliers, answer by the bytes", differs=WIDTHS
        )
    found = gpu_run(claims["gpu-tokens"].setup).output_tokens_per_s
    yield Prediction(claim="gpu-tokens", predicted=found, because="vLLM's step: weights once a token, and its host")
    prompt_s = prefill_s(claims["vhk158-prompt"].setup)
    yield Prediction(
        claim="vhk158-prompt",
        predicted=prompt_s,
        because="all multipliers at their clock, pruned entries skipped",
        differs="loads of tiles that no multiplier waits for here, and the share of cycles that multipliers are fed",
    )
    spilled = claims["off-chip"].setup
    yield Prediction(
        claim="off-chip",
        predicted=reached(spilled, keeps_activations=False),
        because="weights and cache over the memory's rate and the time of a token; "
        f"{reached(spilled, keeps_activations=True):.3g} with activations on chip",
        differs="only the bytes of activations count here; that every operation waits for its small reads does not",
    )


def engine(setup: Setup, *, keeps_activations: bool = True) -> StreamEngine:
    """The board."""
    return StreamEngine(
        memory_bytes_per_s=setup.number("board_bandwidth_bytes_per_s"),
        reached_frac=setup.number("reached_frac"),
        crossing_frac=setup.number("crossing_frac"),
        keeps_activations=keeps_activations,
        flops_per_s=2.0 * setup.number("num_multipliers") * setup.number("core_clock_hz"),
    )


def weights(setup: Setup, model: Model) -> tuple[Compressed, ...]:
    """All products of the model; the pruned ones keep some entries, each with its place among sixteen."""
    bits, pruned = setup.number("num_weight_bits"), [w.strip() for w in setup.word("pruned_layers").split(",")]
    (block,), head = model.blocks, model.head
    assert head is not None
    thirds = sum(x.num_parameters for x in block.linears if x.name == "qkv") / 3.0
    thin = block.count * thirds * len([name for name in pruned if name in PARTS])
    dense = block.count * sum(x.num_parameters for x in block.linears) - thin + head.num_parameters
    return (
        Compressed(num_entries=dense, weight_bits=bits),
        Compressed(num_entries=thin, kept_frac=setup.number("pruned_kept_frac"), weight_bits=bits, place_bits=4.0),
    )


def cache_bytes(setup: Setup, model: Model, context_tokens: float) -> float:
    """Keys and values at the weights' width."""
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, SoftmaxAttention)
    elements = model.num_layers * mixer.cache_elements_per_token * context_tokens
    return elements * setup.number("num_weight_bits") / 8.0


def activation_bytes(model: Model) -> float:
    """One token's tensors between operations, out and in again."""
    (block,) = model.blocks
    each = sum(x.out_features for x in block.linears) + block.norm_elements + block.activation_elements
    return 2.0 * model.num_layers * each


def middle_tokens(setup: Setup) -> float:
    """Context in the middle of the answer."""
    return setup.number("input_tokens") + setup.number("output_tokens") / 2.0


def decode_s(setup: Setup, *, keeps_activations: bool = True) -> float:
    """One token of every sequence; weights pass once, caches are each sequence's own."""
    model, batch = get_model(setup.word("model")), setup.number("num_batch")
    return token_s(
        engine(setup, keeps_activations=keeps_activations),
        weights(setup, model),
        tokens=int(batch),
        cache_bytes=batch * cache_bytes(setup, model, middle_tokens(setup)),
        activation_bytes=activation_bytes(model),
    )


def prefill_s(setup: Setup) -> float:
    """Whole prompts at once."""
    tokens = int(setup.number("input_tokens") * setup.number("num_batch"))
    return token_s(engine(setup), weights(setup, get_model(setup.word("model"))), tokens=tokens)


def tokens_per_s(setup: Setup) -> float:
    """Answer tokens over the whole run."""
    batch, answer = setup.number("num_batch"), setup.number("output_tokens")
    return batch * answer / (prefill_s(setup) + (answer - 1.0) * decode_s(setup))


def moved_bytes(setup: Setup) -> float:
    """Bytes read for one token."""
    model = get_model(setup.word("model"))
    return sum(w.moved_bytes for w in weights(setup, model)) + cache_bytes(setup, model, middle_tokens(setup))


def reached(setup: Setup, *, keeps_activations: bool) -> float:
    """Weights and cache over the memory's rate and the time that a token really takes."""
    time_s = decode_s(setup, keeps_activations=keeps_activations)
    return moved_bytes(setup) / time_s / setup.number("board_bandwidth_bytes_per_s")


def gpu_run(setup: Setup) -> Estimate:
    """The GPU with its engine; a board that the catalogue lacks has its stated bandwidth."""
    d = deployment(setup, engine=setup.word("baseline_engine"), version="0.1")
    if stated := setup.number("baseline_bandwidth_bytes_per_s"):
        d = replace(
            d, cluster=replace(d.cluster, device=replace(d.cluster.device, memory_bandwidth_bytes_per_s=stated))
        )
    return run_of(d, int(setup.number("num_batch")), setup.number("input_tokens"), setup.number("output_tokens"))
