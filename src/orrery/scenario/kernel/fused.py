"""Several kernels in one: recurrent cells that stay, chains of functions, narrow perceptrons."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.base.user_file import read_user_text, user_path
from orrery.execution.dataflow.chain import (
    Machine,
    in_turn_s,
    spilled_bytes,
    stalls,
    streamed_s,
    switched_s,
    traffic_bytes,
)
from orrery.execution.dataflow.words import read_chain
from orrery.hardware.device import Device
from orrery.hardware.roofs import Roofs
from orrery.kernels.fused.chain import Chain, chain_s, shortest_for
from orrery.kernels.fused.on_chip import shared_bytes
from orrery.kernels.fused.perceptron import Perceptron, Phase, fused_s, spilled_s, unfused_s
from orrery.kernels.fused.recurrence import Costs, Recurrence, persistent_s, stepped_s, widest_head
from orrery.scenario.kernel.operator import Found, Operator, Way, Work, one_of

DISPATCH_S = 5e-6
"""One operator of an eager framework, from the host to the device. Assumed."""

LAUNCH_S = 2.4e-6
"""An empty kernel launched by a program of its own. Assumed: as published for an H100."""

MEETING_S, MEETING_RANGE_S = 1.5e-6, (1e-6, 3e-6)
"""All blocks of a kernel wait for each other. Assumed: grid barriers of data-centre GPUs took 1 to 3 us in
microbenchmarks (Zhang et al., arXiv 2004.05371, as recalled)."""

STEP_KERNELS, ALTERNATING_KERNELS = 14, 2
"""Kernels of one step of an LSTM: in eager operators (product, two additions, three sigmoids, two hyperbolic tangents,
three products and an addition, two copies), and with product and cell as a kernel each."""

RNN = {
    "launched": f"{STEP_KERNELS} eager operators a token",
    "alternating": "two kernels a token: product, and cell",
    "persistent": "one kernel for all tokens that keeps the recurrent matrices on chip; blocks meet once a token",
}


def recurrent(work: Work) -> Iterator[Way]:
    """A recurrent layer over a sequence."""
    for name in RNN:
        yield Way(variant=name, format="bf16", find=partial(_recurrent, work, name))


def _layer(work: Work) -> Recurrence:
    heads, wide = work.size("num_heads"), work.size("hidden_size")
    if wide % heads:
        raise ScenarioError(f"num_heads: {heads} do not divide a hidden size of {wide}.")
    return Recurrence(num_gates=work.size("gates"), num_heads=heads, num_head_features=wide // heads)


def _recurrent(work: Work, name: str) -> Found:
    device, layer = work.device, _layer(work)
    batch, tokens = work.size("batch"), work.size("seq_len")
    _check_bf16_gpu(device)
    weights, flops = layer.num_heads * layer.head_bytes, tokens * layer.step_flops(batch)
    is_cached = weights <= device.last_level_cache_bytes
    peak = device.dense_flops_per_s["bf16"]
    if name == "persistent":
        found = partial(_persistent_s, work, layer)
        meeting_s = work.number("meeting_s", MEETING_S)
        time_s, moved, waits = found(meeting_s), weights, tokens * meeting_s
        low, high = (found(each) for each in MEETING_RANGE_S)
        details = {"widest_head": _widest(work, layer), "with_meetings_of_1_us_s": low, "with_meetings_of_3_us_s": high}
        because = f"a meeting of blocks takes {meeting_s * 1e6:g} µs"
    else:
        count = STEP_KERNELS if name == "launched" else ALTERNATING_KERNELS
        each_s = work.number("launch_s", DISPATCH_S if name == "launched" else LAUNCH_S)
        time_s = stepped_s(layer, batch, tokens, count, device, each_s)
        moved, waits = (weights if is_cached else tokens * weights), tokens * count * each_s
        details, because = {"kernels": tokens * count}, f"{count} launches a token of {each_s * 1e6:g} µs each"
    text = work.has("meeting_s" if name == "persistent" else "launch_s")
    return Found(
        time_s=time_s,
        flops=flops,
        bytes=moved,
        roofs_s={"compute": flops / peak, "memory": moved / device.memory_bandwidth_bytes_per_s},
        others_s={"meetings" if name == "persistent" else "launches": waits},
        details=details,
        because=(because + ("" if text else " (assumed)"),),
    )


def _persistent_s(work: Work, layer: Recurrence, meeting_s: float) -> float:
    if layer.num_head_features > (widest := _widest(work, layer)):
        raise OutOfRange(
            f"a head of {layer.num_head_features} features with {layer.num_gates} gates does not stay on "
            f"{work.device.name}: the widest whose matrices fit the registers and shared memory of "
            f"{work.device.num_compute_units // layer.num_heads} processors has {widest}."
        )
    costs = Costs(launch_s=LAUNCH_S, meeting_s=meeting_s)
    return persistent_s(layer, work.size("batch"), work.size("seq_len"), work.device, costs)


def _widest(work: Work, layer: Recurrence) -> int:
    processors = max(1, work.device.num_compute_units // layer.num_heads)
    return widest_head(
        layer.num_gates,
        processors,
        register_frac=work.number("register_frac", 0.5),
        shared_bytes=shared_bytes(work.device),
    )


def _check_bf16_gpu(device: Device) -> None:
    if device.kind != "gpu" or "bf16" not in device.dense_flops_per_s:
        raise OutOfRange(
            f"{device.name} is a {device.kind} of {device.generation}: kernels that stay are counted for "
            "GPUs with 16-bit matrix units."
        )


CHAIN = {
    "apart": "a kernel for each function and array",
    "vertical": "one kernel for the functions of an array",
    "horizontal": "one kernel for a function of all arrays",
    "both": "one kernel",
    "sequential": "every product on the whole device, results through memory (--chain, dataflow device)",
    "dataflow": "all products side by side, each on its share (--chain, dataflow device)",
    "switching": "groups side by side, in turn: the cheapest cut, fixed beforehand (--chain, dataflow device)",
}
KINDS = {"apart": (False, False), "vertical": (True, False), "horizontal": (False, True), "both": (True, True)}
DATAFLOW = ("sequential", "dataflow", "switching")


def chain(work: Work) -> Iterator[Way]:
    """Functions over arrays on a device that launches kernels; products on one that lays tasks out."""
    if work.has("chain"):
        for name in DATAFLOW:
            yield Way(variant=name, format="16-bit", find=partial(_dataflow, work, name))
        return
    if missing := [name for name in ("ops", "pixels") if not work.size(name)]:
        raise ScenarioError(f"chain: {', '.join(missing)} must be said, or --chain 512x768x3072x768 for products.")
    for name in KINDS:
        yield Way(variant=name, format="fp32", find=partial(_fused, work, name))


def _fused(work: Work, name: str) -> Found:
    device, launch_s = work.device, work.number("launch_s", DISPATCH_S)
    if device.kind != "gpu":
        raise OutOfRange(f"{device.name} is a {device.kind}: launches and resident threads are counted for GPUs.")
    made = Chain(num_functions=work.size("ops"), num_arrays=work.size("batch"), num_elements=work.size("pixels"))
    vertical, horizontal = KINDS[name]
    elements = float(made.num_arrays) * made.num_elements
    moved = 2.0 * elements * made.element_bytes * (1 if vertical else made.num_functions)
    flops = elements * made.num_functions * made.function_flops
    kernels = (1 if vertical else made.num_functions) * (1 if horizontal else made.num_arrays)
    details = {"kernels": kernels}
    if name == "both":
        details |= {
            "shortest_for_2x_ops": shortest_for(2.0, made, device, launch_s),
            "shortest_for_1000x_ops": shortest_for(1000.0, made, device, launch_s),
        }
    return Found(
        time_s=chain_s(made, device, launch_s, is_vertical=vertical, is_horizontal=horizontal),
        flops=flops,
        bytes=moved,
        roofs_s={"compute": flops / device.vector_flops_per_s, "memory": moved / device.memory_bandwidth_bytes_per_s},
        others_s={"launches": kernels * launch_s},
        details=details,
        because=(
            f"{kernels} launches of {launch_s * 1e6:g} µs, nothing hidden"
            + ("" if work.has("launch_s") else " (assumed)"),
        ),
    )


def _chain_words(text: str) -> str:
    """The sizes as written, or those in a text file."""
    path = user_path(text) if text.endswith(".txt") else None
    return read_user_text(path, "text file with a chain such as 512x768x3072x768", MAX_BYTES) if path else text


MAX_BYTES = 100_000


def _dataflow(work: Work, name: str) -> Found:
    device = work.device
    if device.kind != "dataflow":
        raise OutOfRange(
            f"{device.name} is a {device.kind}: tasks are laid out side by side on dataflow devices, such as sn40l, or "
            'a device file of yours with kind = "dataflow".'
        )
    tasks = read_chain(_chain_words(str(work.words["chain"])))
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    machine = Machine(
        flops_per_s=peak,
        memory_bytes_per_s=device.memory_bandwidth_bytes_per_s,
        buffer_bytes=device.last_level_cache_bytes,
        start_s=work.number("launch_s", 0.0),
    )
    if name == "switching":
        time_s, groups = switched_s(tasks, machine)
    elif name == "dataflow":
        time_s, groups = streamed_s(tasks, machine), (len(tasks),)
    else:
        machine = replace(machine, buffer_bytes=0.0)
        time_s, groups = in_turn_s(tasks, machine), (1,) * len(tasks)
    moved, flops = traffic_bytes(tasks, groups, machine), sum(task.flops for task in tasks)
    return Found(
        time_s=time_s,
        flops=flops,
        bytes=moved,
        roofs_s={"compute": flops / peak, "memory": moved / device.memory_bandwidth_bytes_per_s},
        details={
            "groups": "+".join(map(str, groups)),
            "stalls": stalls(tasks, groups),
            "spilled_bytes": spilled_bytes(tasks, groups, machine),
        },
        because=(
            f"groups of {groups} tasks; tensors between groups stay in {machine.buffer_bytes:.3g} bytes where they fit",
        ),
    )


MLP = {
    "roof": "operations and compulsory bytes alone",
    "fused": "one kernel: activations in registers, weights beside the processors",
    "layer-by-layer": "a kernel for each product and each activation function",
}
ROWS_PER_LOAD = 128
"""Rows of one block of a fused kernel, which share a load of the weights (tiny-cuda-nn's fused kernel)."""


def perceptron(work: Work) -> Iterator[Way]:
    """A narrow multi-layer perceptron."""
    for name in MLP:
        yield Way(variant=name, format="bf16", find=partial(_perceptron, work, name))


def _perceptron(work: Work, name: str) -> Found:
    device, rows = work.device, work.size("batch")
    phase = Phase(one_of("phase", work.word("phase", Phase.INFERENCE), [p.value for p in Phase]))
    network = Perceptron(num_width=work.size("width"), num_matrices=work.size("depth"))
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    roofs = Roofs(flops_per_s=peak, bytes_per_s=device.memory_bandwidth_bytes_per_s)
    launch_s, flops = work.number("launch_s", DISPATCH_S), rows * network.flops(phase)
    details: dict[str, object] = {}
    others: dict[str, float] = {}
    if name == "layer-by-layer":
        if phase is Phase.FORWARD:
            raise OutOfRange("layer by layer is counted for inference and training; write one of them as the phase.")
        moved, time_s = network.unfused_bytes(phase, rows), unfused_s(network, phase, rows, roofs, launch_s)
        because = f"{network.unfused_launches(phase)} launches of {launch_s * 1e6:g} µs"
    elif name == "roof":
        moved = network.fused_bytes(phase, rows, rows)
        time_s, because = roofs.time_s(flops, moved), "weights read once"
    elif network.matrix_bytes > (room := shared_bytes(device)):
        details = {"matrix_bytes": network.matrix_bytes, "on_chip_bytes": room}
        moved, time_s = network.spilled_bytes(phase, rows), spilled_s(network, phase, rows, roofs, launch_s)
        because = "a matrix does not fit beside a processor: a kernel a product, activation functions within"
    else:
        details = {"matrix_bytes": network.matrix_bytes, "on_chip_bytes": room}
        moved, time_s, others, because = _on_chip(work, network, phase, roofs)
    if work.has("on_chip_flops_per_s") and not others:
        because += "; on_chip_flops_per_s changes nothing: no weights are kept on chip"
    assumed = "" if work.has("launch_s") or name == "roof" else " (a launch of 5 µs is assumed)"
    return Found(
        time_s=time_s,
        flops=flops,
        bytes=moved,
        roofs_s={"compute": flops / peak, "memory": moved / device.memory_bandwidth_bytes_per_s},
        others_s=others,
        details={**details, "flops_per_byte": flops / moved},
        because=(because + assumed,),
    )


def _on_chip(work: Work, network: Perceptron, phase: Phase, roofs: Roofs) -> tuple[float, float, dict[str, float], str]:
    """Bytes and seconds of the fused kernel, what else binds it, and why."""
    rows, together = work.size("batch"), work.size("rows_per_load")
    on_chip = work.number("on_chip_flops_per_s", roofs.flops_per_s)
    limits = replace(roofs, flops_per_s=min(roofs.flops_per_s, on_chip))
    time_s = fused_s(network, phase, rows, together, limits, work.number("launch_s", DISPATCH_S))
    others = {"on-chip reads": rows * network.flops(phase) / on_chip} if work.has("on_chip_flops_per_s") else {}
    because = f"{together} rows share a load of the weights"
    because += "" if others else "; reads of weights on chip are not counted"
    return network.fused_bytes(phase, rows, together), time_s, others, because


RECURRENT = Operator(
    name="rnn",
    sizes={"hidden_size": None, "seq_len": None, "batch": 1, "num_heads": 1, "gates": 4},
    ways=recurrent,
    variants=RNN,
    settings=frozenset({"launch_s", "meeting_s", "register_frac"}),
    spellings={"fused": "persistent"},
)
CHAINS = Operator(
    name="chain",
    sizes={"ops": 0, "pixels": 0, "batch": 1},
    ways=chain,
    variants=CHAIN,
    settings=frozenset({"launch_s", "chain"}),
)
FUSED_MLP = Operator(
    name="fused-mlp",
    sizes={"width": None, "depth": None, "batch": None, "rows_per_load": ROWS_PER_LOAD},
    ways=perceptron,
    variants=MLP,
    settings=frozenset({"launch_s", "phase", "on_chip_flops_per_s"}),
)
