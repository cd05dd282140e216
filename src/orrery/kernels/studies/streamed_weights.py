"""Answers of a pruned, narrowed network whose weights stream past a board's multipliers. [flightllm-2024]"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.hardware.device import Device
from orrery.kernels.lowbit.streamed import Compressed, StreamEngine, token_s

BOARD = ("memory_bytes_per_s", "flops_per_s", "board_w")
"""Sizes that a device has; 0 where it decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A network by its counts (those of a 7B decoder), what is pruned of it, the requests, and the board."""

    num_weights: float = 6.607e9
    pruned_frac: float = 0.163  # share of the weights in layers that are pruned; the others stay whole
    kept_frac: str = "1,0.5"  # of a pruned layer's entries
    place_bits: float = 4.0  # of a kept entry's place, where not all are kept
    weight_bits: str = "8,4"
    cache_elements_per_token: float = 262144.0  # keys and values of all layers, at the weights' width
    activation_bytes: float = 3.95e6  # a token's tensors between operations, written and read, of all layers
    input_tokens: int = 128
    output_tokens: int = 512
    batch: int = 1
    memory_bytes_per_s: float = 0.0
    flops_per_s: float = 0.0
    board_w: float = 0.0
    reached_frac: float = 0.7  # of the memory's rate, by long reads from a unit's own channels
    crossing_frac: float = 0.35  # the same, by short reads that cross channels
    skips_zeros: int = 1
    keeps_activations: int = 1


def run(request: Run) -> tuple[Row, ...]:
    """A row for each width and share of kept entries."""
    sizes: Sizes = request.sizes
    if request.device is None and not min(getattr(sizes, name) for name in BOARD) > 0.0:
        raise ScenarioError(
            "device: experiment streamed-weights runs on a board; write --device alveo-u280, or all of "
            "--set memory_bytes_per_s=.., flops_per_s=.. and board_w=.."
        )
    _check(sizes)
    return tuple(
        _row(sizes, engine_of(sizes, request.device), _board_w(sizes, request.device), bits, kept_frac)
        for bits in numbers("weight_bits", sizes.weight_bits, least=1, most=32)
        for kept_frac in numbers("kept_frac", sizes.kept_frac, most=1)
    )


def _check(sizes: Sizes) -> None:
    """Refuse counts that no network or board has."""
    if not (sizes.num_weights > 0.0 and 0.0 <= sizes.pruned_frac <= 1.0):
        raise ScenarioError("set: num_weights is above 0, and pruned_frac a share from 0 to 1.")
    if not 0.0 < sizes.crossing_frac <= sizes.reached_frac <= 1.0:
        raise ScenarioError("set: reached_frac is up to 1, and crossing_frac above 0 and no larger.")
    for name in ("place_bits", "cache_elements_per_token", "activation_bytes", *BOARD):
        if getattr(sizes, name) < 0.0:
            raise ScenarioError(f"set: {name} = {getattr(sizes, name):g}; write 0 or more.")


def engine_of(sizes: Sizes, device: Device | None) -> StreamEngine:
    """The board: what the sizes say, and otherwise the device's rates."""
    return StreamEngine(
        memory_bytes_per_s=sizes.memory_bytes_per_s or (device.memory_bandwidth_bytes_per_s if device else 0.0),
        reached_frac=sizes.reached_frac,
        crossing_frac=sizes.crossing_frac,
        flops_per_s=sizes.flops_per_s or (device.peak_flops_per_s(("fp16", "bf16"))[1] if device else 0.0),
        skips_zeros=bool(sizes.skips_zeros),
        keeps_activations=bool(sizes.keeps_activations),
    )


def _board_w(sizes: Sizes, device: Device | None) -> float:
    return sizes.board_w or (device.power_limit_w if device else 0.0)


def _row(sizes: Sizes, engine: StreamEngine, board_w: float, bits: float, kept_frac: float) -> Row:
    """One answer of every request: prompts by the multipliers or the bytes, tokens against the cache half-way."""
    batch, answer = whole("batch", sizes.batch), whole("output_tokens", sizes.output_tokens, most=10**7)
    prompt = whole("input_tokens", sizes.input_tokens, most=10**7)
    weights = _weights(sizes, bits, kept_frac)
    cache_bytes = batch * sizes.cache_elements_per_token * (prompt + answer / 2.0) * bits / 8.0
    prefill_s = token_s(engine, weights, tokens=prompt * batch)
    decode_s = token_s(
        engine,
        weights,
        tokens=batch,
        cache_bytes=cache_bytes,
        activation_bytes=sizes.activation_bytes,
    )
    moved_bytes = sum(part.moved_bytes for part in weights) + cache_bytes
    rate = batch * answer / (prefill_s + (answer - 1.0) * decode_s)
    return {
        "weight_bits": bits,
        "kept_frac": kept_frac,
        "moved_bytes": moved_bytes,
        "prefill_s": prefill_s,
        "token_s": decode_s,
        "tokens_per_s": rate,
        "tokens_per_j": rate / board_w,
        "reached_frac": moved_bytes / decode_s / engine.memory_bytes_per_s,
    }


def _weights(sizes: Sizes, bits: float, kept_frac: float) -> tuple[Compressed, ...]:
    """The layers that stay whole, and those that keep some entries, each with its place."""
    pruned = sizes.num_weights * sizes.pruned_frac
    return (
        Compressed(num_entries=sizes.num_weights - pruned, weight_bits=bits),
        Compressed(
            num_entries=pruned,
            kept_frac=kept_frac,
            weight_bits=bits,
            place_bits=sizes.place_bits if kept_frac < 1.0 else 0.0,
        ),
    )


EXPERIMENT = Experiment(
    name="streamed-weights",
    question="What do pruned and narrowed weights gain one request on a board that streams them past multipliers?",
    run=run,
    num_steps=1,
    claims=("flightllm",),
    sizes=Sizes,
    reads=("device",),
    keys=("weight_bits", "kept_frac"),
    curve=("kept_frac", "token_s"),
)
