"""Tensors of a program in a small fast memory: a greedy pass, a search that looks ahead, and a bound on both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, whole
from orrery.execution.offload import MAPPINGS
from orrery.execution.offload.mapping import MappingGame, most_saved_s
from orrery.execution.offload.mapping_graphs import (
    Machine,
    Operation,
    convolutions,
    game_of,
    transformer,
    with_backward,
)
from orrery.execution.offload.program_table import read_program

MAX_OPERATIONS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A program, with its gradients or without; the machine's rates and fast memory; and the search.

    ``program`` is transformer (layers, hidden, heads, sequences, tokens) or convolutions (channels, blocks, side,
    images). A device's own rates and memory stand in place of ``flops_per_s`` and ``slow_bytes_per_s``.
    """

    program: str = "transformer"
    gradients: int = 1
    layers: int = 2
    hidden: int = 768
    heads: int = 12
    sequences: int = 16
    tokens: int = 512
    channels: str = "64,128"
    blocks: int = 2
    side: int = 224
    images: int = 16
    flops_per_s: float = 138e12
    slow_bytes_per_s: float = 614e9
    fast_ratio: float = 10.0
    fast_bytes: float = 134217728.0
    width: int = 4
    playouts: int = 1
    noise_ratio: float = 0.3


def run(request: Run) -> tuple[Row, ...]:
    """A row a way of mapping: the program's time, what it saves, and how far that is from the bound."""
    sizes: Sizes = request.sizes
    game = game_of(program_of(request), machine_of(request))
    bound_s = min(most_saved_s(game), game.base_s)
    rows: list[Row] = [_row("slow-memory-alone", game, 0.0, bound_s)]
    knobs: dict[str, dict[str, Any]] = {
        "greedy-mapping": {},
        "tree-search-mapping": {
            "width": whole("width", sizes.width, most=64),
            "num_playouts": whole("playouts", sizes.playouts, most=64),
            "noise_ratio": sizes.noise_ratio,
            "seed": request.seed,
        },
    }
    for done, (name, technique) in enumerate(MAPPINGS.techniques.items(), 1):
        found = technique.rule(game, technique.knobs(**knobs.get(name, {})))
        if not found.is_legal:
            raise ScenarioError(f"{name}: two tensors share an address at one time.")
        rows.append(_row(name, game, found.saved_s, bound_s))
        request.progress(done, len(MAPPINGS.techniques))
    return tuple(rows)


def _row(name: str, game: MappingGame, saved_s: float, bound_s: float) -> Row:
    return {
        "mapping": name,
        "time_s": game.base_s - saved_s,
        "saved_frac": saved_s / game.base_s,
        "bound_frac": bound_s / game.base_s,
        "of_bound_frac": saved_s / bound_s if bound_s > 0.0 else 1.0,
        "tensors": len(game.tensors),
    }


def machine_of(request: Run) -> Machine:
    """The device of the user with a fast memory, or the sizes' own machine."""
    sizes: Sizes = request.sizes
    flops_per_s, slow = sizes.flops_per_s, sizes.slow_bytes_per_s
    if request.device is not None:
        flops_per_s = request.device.peak_flops_per_s(("bf16", "fp16"))[1]
        slow = request.device.memory_bandwidth_bytes_per_s
    if min(flops_per_s, slow, sizes.fast_ratio, sizes.fast_bytes) <= 0.0:
        raise ScenarioError("set: flops_per_s, slow_bytes_per_s, fast_ratio and fast_bytes; write numbers above 0.")
    return Machine(
        flops_per_s=flops_per_s,
        slow_bytes_per_s=slow,
        fast_bytes_per_s=slow * sizes.fast_ratio,
        fast_bytes=sizes.fast_bytes,
    )


def program_of(request: Run) -> Sequence[Operation]:
    """The user's table of operations, or a network of the sizes."""
    sizes: Sizes = request.sizes
    if request.data:
        found = read_program(request.data["table"])
    elif sizes.program == "transformer":
        found = transformer(
            whole("layers", sizes.layers, most=64),
            whole("hidden", sizes.hidden, most=65536),
            whole("heads", sizes.heads, most=1024),
            whole("sequences", sizes.sequences, most=65536),
            whole("tokens", sizes.tokens, most=1_000_000),
        )
    elif sizes.program == "convolutions":
        found = convolutions(
            [whole("channels", int(n), most=65536) for n in sizes.channels.split(",")],
            whole("blocks", sizes.blocks, most=64),
            whole("side", sizes.side, most=16384),
            whole("images", sizes.images, most=65536),
        )
    else:
        raise ScenarioError(f"set: program = {sizes.program!r}; write transformer or convolutions, or give --data.")
    made = with_backward(found) if sizes.gradients else found
    if len(made) > MAX_OPERATIONS:
        raise ScenarioError(f"set: {len(made)} operations; write a program of at most {MAX_OPERATIONS}.")
    return made


EXPERIMENT = Experiment(
    name="memory-mapping",
    question="Which tensors of a program should live in a small fast memory, and is looking ahead worth it?",
    run=run,
    num_steps=1,
    claims=("mallocmuzero",),
    sizes=Sizes,
    reads=("table", "device"),
    keys=("mapping",),
)
