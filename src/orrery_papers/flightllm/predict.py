"""FlightLLM: compressed weights that stream through an FPGA, against a GPU with one request."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.experiment import Row
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import Model, SoftmaxAttention
from orrery.serving.estimate import Estimate
from orrery_papers.shared.estimated import run_of
from orrery_papers.shared.experiments import rows_of
from orrery_papers.shared.setup import deployment

PARTS = ("q", "k", "v")
"""Thirds of a fused projection."""
WIDTHS = (
    "the demo's profiler divides all its times by 3.2; with 8 bits a weight its bytes alone take longer than it says"
)
DIFFERS = "widths of weights, pruning, prices and power: what the authors released and what they report differ"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Against the A100 first, for the sweep; then a joule and a dollar; then the released runs."""
    claims = {claim.id: claim for claim in paper.claims}
    large, small = claims["throughput"].setup, claims["energy"].setup
    board, gpu = streamed(large), gpu_run(large)
    ours = float(board["tokens_per_s"])
    yield Prediction(
        claim="throughput",
        predicted=ours / gpu.output_tokens_per_s,
        because=f"{ours:.4g} tokens/s from {float(board['moved_bytes']) / 1e9:.3g} GB a token; "
        f"the GPU {gpu.output_tokens_per_s:.4g}",
        differs=WIDTHS,
    )
    board, gpu = streamed(small), gpu_run(small)
    ours = float(board["tokens_per_s"])
    each, theirs = float(board["tokens_per_j"]), gpu.output_tokens_per_s / gpu.power_w
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
        found = float(streamed(claims[claim].setup)["tokens_per_s"])
        yield Prediction(
            claim=claim, predicted=found, because="prompt by the multipliers, answer by the bytes", differs=WIDTHS
        )
    found = gpu_run(claims["gpu-tokens"].setup).output_tokens_per_s
    yield Prediction(claim="gpu-tokens", predicted=found, because="vLLM's step: weights once a token, and its host")
    prompt_s = float(streamed(claims["vhk158-prompt"].setup)["prefill_s"])
    yield Prediction(
        claim="vhk158-prompt",
        predicted=prompt_s,
        because="all multipliers at their clock, pruned entries skipped",
        differs="loads of tiles that no multiplier waits for here, and the share of cycles that multipliers are fed",
    )
    spilled = claims["off-chip"].setup
    yield Prediction(
        claim="off-chip",
        predicted=float(streamed(spilled, keeps_activations=False)["reached_frac"]),
        because="weights and cache over the memory's rate and the time of a token; "
        f"{streamed(spilled)['reached_frac']:.3g} with activations on chip",
        differs="only the bytes of activations count here; that every operation waits for its small reads does not",
    )


def streamed(setup: Setup, *, keeps_activations: bool = True) -> Row:
    """One run on the board, by orrery experiment streamed-weights."""
    model, bits = get_model(setup.word("model")), setup.number("num_weight_bits")
    (block,), head = model.blocks, model.head
    assert head is not None
    assert isinstance(block.mixer, SoftmaxAttention)
    pruned = [word.strip() for word in setup.word("pruned_layers").split(",")]
    thirds = block.count * sum(x.num_parameters for x in block.linears if x.name == "qkv") / 3.0
    whole = block.count * sum(x.num_parameters for x in block.linears) + head.num_parameters
    sizes: dict[str, float | str] = {
        "num_weights": whole,
        "pruned_frac": thirds * len([name for name in pruned if name in PARTS]) / whole,
        "kept_frac": f"{setup.number('pruned_kept_frac'):g}",
        "weight_bits": f"{bits:g}",
        "cache_elements_per_token": model.num_layers * block.mixer.cache_elements_per_token,
        "activation_bytes": activation_bytes(model),
        "input_tokens": setup.number("input_tokens"),
        "output_tokens": setup.number("output_tokens"),
        "batch": setup.number("num_batch"),
        "memory_bytes_per_s": setup.number("board_bandwidth_bytes_per_s"),
        "flops_per_s": 2.0 * setup.number("num_multipliers") * setup.number("core_clock_hz"),
        "board_w": setup.number("board_w") or 1.0,  # read only where the set-up has it
        "reached_frac": setup.number("reached_frac"),
        "crossing_frac": setup.number("crossing_frac"),
        "keeps_activations": int(keeps_activations),
    }
    (row,) = rows_of("streamed-weights", sizes)
    return row


def activation_bytes(model: Model) -> float:
    """One token's tensors between operations, out and in again."""
    (block,) = model.blocks
    each = sum(x.out_features for x in block.linears) + block.norm_elements + block.activation_elements
    return 2.0 * model.num_layers * each


def gpu_run(setup: Setup) -> Estimate:
    """The GPU with its engine; a board that the catalogue lacks has its stated bandwidth."""
    d = deployment(setup, engine=setup.word("baseline_engine"), version="0.1")
    if stated := setup.number("baseline_bandwidth_bytes_per_s"):
        d = replace(
            d, cluster=replace(d.cluster, device=replace(d.cluster.device, memory_bandwidth_bytes_per_s=stated))
        )
    return run_of(d, int(setup.number("num_batch")), setup.number("input_tokens"), setup.number("output_tokens"))
