"""SN40L: layers that stream through a chip, and experts that come up from DDR."""

from collections.abc import Iterator
from statistics import geometric_mean

import numpy as np

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.composition import Node, missed_frac, nodes_to_hold
from orrery.execution.dataflow.chain import Machine, Task, in_turn_s, streamed_s
from orrery.execution.dataflow.layer import layer_tasks
from orrery.execution.memory import USABLE_FRAC
from orrery.hardware.device import Device
from orrery_papers.shared.passes import decodes, pass_of, prompts
from orrery_papers.shared.setup import deployment

BYTES = 2.0
DIFFERS = "prompts, answers and the GPUs' engine are not in the text at hand"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The whole first, for the sweep; then its parts."""
    node, layers = paper.setups["node"], paper.setups["layers"]
    ours_s, words = request_s(node, ours(node), rdu_run_s(node))
    for key, name in zip(("overall-h100", "overall-a100"), gpus(node), strict=True):
        theirs_s, description = request_s(node, theirs(node, name), gpu_run_s(node, name))
        yield Prediction(
            claim=key, predicted=theirs_s / ours_s, because=f"{description}; here {words}", differs=DIFFERS
        )
    gains = list(fused_gains(layers))
    yield Prediction(
        claim="fused",
        predicted=geometric_mean(gain for _, gain in gains),
        because="kernels in turn over streamed layers: " + ", ".join(f"{what} {gain:.2g}" for what, gain in gains),
        differs="benchmarks that gain most (long convolutions, training) are not run",
    )
    held = ours(node).large_experts(expert_bytes(node))
    needed = [nodes_to_hold(held, expert_bytes(node), theirs(node, name)) for name in gpus(node)]
    yield Prediction(
        claim="footprint",
        predicted=float(max(needed)),
        because=f"one node's DDR holds {held} experts of {expert_bytes(node) / 1e9:.3g} GB; HBM alone takes {needed}",
        differs="how much of either memory experts may fill is not stated",
    )
    switches = [
        theirs(node, n).switch_s(expert_bytes(node)) / ours(node).switch_s(expert_bytes(node)) for n in gpus(node)
    ]
    yield Prediction(
        claim="switch",
        predicted=geometric_mean(switches),
        because=f"geometric mean of {switches[0]:.3g} and {switches[1]:.3g}: DDR of a node against one host link",
    )


def gpus(setup: Setup) -> list[str]:
    """The servers that it is compared with."""
    return [word.strip() for word in setup.word("devices").split(",")]


def expert_bytes(setup: Setup) -> float:
    """One expert in 16 bits."""
    return BYTES * get_model(setup.word("model")).num_parameters


def ours(setup: Setup) -> Node:
    """Sockets with HBM and DDR."""
    device, count = get_device(setup.word("device")), setup.number("num_devices")
    return Node(
        fast_bytes=USABLE_FRAC * device.memory_capacity_bytes * count,
        large_bytes=setup.number("large_memory_bytes") * count,
        switch_bytes_per_s=setup.number("switch_bytes_per_s"),
    )


def theirs(setup: Setup, name: str) -> Node:
    """GPUs behind their host's links; the host's memory is no limit."""
    device, count = get_device(name), setup.number("num_devices")
    return Node(
        fast_bytes=USABLE_FRAC * device.memory_capacity_bytes * count,
        large_bytes=np.inf,
        switch_bytes_per_s=device.host.each_way_bytes_per_s * setup.number("num_switch_links"),
        switch_latency_s=device.host.latency_s,
    )


def request_s(setup: Setup, node: Node, run_s: float) -> tuple[float, str]:
    """One prompt with an expert of its own, copied first where it is not there; one expert's room is the router's."""
    size = expert_bytes(setup)
    missed = missed_frac(int(setup.number("num_expert_models")), node.fast_experts(size) - 1)
    switch_s = missed * node.switch_s(size)
    return (
        run_s + switch_s,
        f"{switch_s * 1e3:.3g} ms of switching ({missed:.0%} missed) and {run_s * 1e3:.3g} ms of running",
    )


def gpu_run_s(setup: Setup, name: str) -> float:
    """One prompt and its answer on all GPUs of a server."""
    d = deployment(setup, device=name, layout=f"tp{int(setup.number('num_devices'))}")
    prompt, answer = int(setup.number("input_tokens")), int(setup.number("output_tokens"))
    first = float(pass_of(d, prompts(np.array([prompt]))).total_s[0])
    return first + (answer - 1) * float(pass_of(d, decodes(np.array([1]), np.array([prompt + answer // 2]))).total_s[0])


def rdu_run_s(setup: Setup) -> float:
    """The same with streamed layers."""
    prompt, answer = int(setup.number("input_tokens")), int(setup.number("output_tokens"))
    later = whole_s(setup, 1, prompt + answer // 2, is_fused=True)
    return whole_s(setup, prompt, prompt, is_fused=True) + (answer - 1) * later


def fused_gains(setup: Setup) -> Iterator[tuple[str, float]]:
    """Prompts of several lengths, and a step of answering behind each."""
    for tokens in setup.numbers("input_tokens_swept"):
        for name, new in (("prompt", int(tokens)), ("answer after", 1)):
            slow, fast = (whole_s(setup, new, int(tokens), is_fused=fused) for fused in (False, True))
            yield f"{name} {int(tokens)}", slow / fast


def whole_s(setup: Setup, tokens: int, context_tokens: int, *, is_fused: bool) -> float:
    """All layers and the head: streamed, or every task a kernel of its own whose tensors pass through the HBM."""
    model, device = get_model(setup.word("model")), get_device(setup.word("device"))
    ranks = int(setup.number("num_devices"))
    (block,), head = model.blocks, model.head
    assert head is not None
    tasks = layer_tasks(block, model.hidden_size, tokens, context_tokens, bytes_each=BYTES, ranks=ranks)
    outputs = head.in_features * head.out_features / ranks
    last = Task(name="head", flops=2.0 * outputs, weight_bytes=BYTES * outputs)
    machine = spatial(setup, device, is_fused=is_fused)
    run = streamed_s if is_fused else in_turn_s
    sums_s = block.num_reduces * block.count * device.scaleup.latency_s
    return block.count * run(tasks, machine) + run((last,), machine) + sums_s


def spatial(setup: Setup, device: Device, *, is_fused: bool) -> Machine:
    """The chip as far as streams reach its roofs; without fusion nothing is kept on it."""
    reached = setup.number("streamed_rate_frac")
    return Machine(
        flops_per_s=reached * device.dense_flops_per_s["bf16"],
        memory_bytes_per_s=reached * device.memory_bandwidth_bytes_per_s,
        buffer_bytes=device.last_level_cache_bytes if is_fused else 0.0,
        start_s=setup.number("kernel_start_s"),
    )
