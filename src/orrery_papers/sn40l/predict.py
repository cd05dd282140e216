"""SN40L: layers that stream through a chip, and experts that come up from DDR."""

from collections.abc import Iterator
from statistics import geometric_mean

from orrery.base.units import percent
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.composition import Node, nodes_to_hold
from orrery.execution.dataflow.decoder import pass_s
from orrery.execution.memory import USABLE_FRAC
from orrery.scenario.composition import CompositionAnswer
from orrery.scenario.simulations import simulate
from orrery_papers.shared.setup import settings_of

DIFFERS = "prompts, answers and the GPUs' engine are not in the text at hand"


def predict(paper: Paper) -> Iterator[Prediction]:
    """The whole first, for the sweep; then its parts."""
    node, layers = paper.setups["node"], paper.setups["layers"]
    names = [word.strip() for word in node.word("devices").split(",")]
    ours = composed(node, node.word("device"), node.number("switch_bytes_per_s"))
    theirs = [composed(node, name, link_bytes_per_s(node, name)) for name in names]
    for key, gpus in zip(("overall-h100", "overall-a100"), theirs, strict=True):
        yield Prediction(
            claim=key,
            predicted=request_s(gpus) / request_s(ours),
            because=f"{described(gpus)}; here {described(ours)}",
            differs=DIFFERS,
        )
    gains = list(fused_gains(layers))
    yield Prediction(
        claim="fused",
        predicted=geometric_mean(gain for _, gain in gains),
        because="kernels in turn over streamed layers: " + ", ".join(f"{what} {gain:.2g}" for what, gain in gains),
        differs="benchmarks that gain most (long convolutions, training) are not run",
    )
    size, count = ours.expert.expert_bytes, node.number("num_devices")
    held = int(node.number("large_memory_bytes") * count // size)
    needed = [nodes_to_hold(held, size, hbm(node, name)) for name in names]
    yield Prediction(
        claim="footprint",
        predicted=float(max(needed)),
        because=f"one node's DDR holds {held} experts of {size / 1e9:.3g} GB; HBM alone takes {needed}",
        differs="how much of either memory experts may fill is not stated",
    )
    switches = [gpus.expert.switch_s / ours.expert.switch_s for gpus in theirs]
    yield Prediction(
        claim="switch",
        predicted=geometric_mean(switches),
        because=f"geometric mean of {switches[0]:.3g} and {switches[1]:.3g}: DDR of a node against one host link",
        differs="how many host links of a GPU server bring experts, which decides and is not stated ([unstated] links)",
    )


def composed(setup: Setup, device: str, rate: float) -> CompositionAnswer:
    """``orrery simulate --composition`` on one server."""
    settings = settings_of(setup)
    answer = simulate(
        model=settings["model"],
        weights=settings["weights"],
        device=device,
        tp=int(setup.number("num_devices")),
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=int(setup.number("output_tokens")),
        composition=str(int(setup.number("num_expert_models"))),
        switch_bytes_per_s=rate,
    )
    assert isinstance(answer, CompositionAnswer)
    return answer


def link_bytes_per_s(setup: Setup, name: str) -> float:
    """Host links of a GPU server that experts come up by."""
    return get_device(name).host.each_way_bytes_per_s * setup.number("num_switch_links")


def request_s(answer: CompositionAnswer) -> float:
    """A lone request once the memory is full."""
    return next(p.request_s for p in answer.curve if p.output_tokens == answer.output_tokens)


def described(answer: CompositionAnswer) -> str:
    """The parts of a request as text."""
    switch_s = answer.settled_missed_frac * answer.expert.switch_s
    run_s = answer.expert.run_s(answer.output_tokens)
    missed = f"{percent(answer.settled_missed_frac)} missed"
    return f"{switch_s * 1e3:.3g} ms of switching ({missed}) and {run_s * 1e3:.3g} ms of running"


def hbm(setup: Setup, name: str) -> Node:
    """GPUs whose memories alone hold experts; how fast those come is no matter."""
    room = USABLE_FRAC * get_device(name).memory_capacity_bytes * setup.number("num_devices")
    return Node(fast_bytes=room, switch_bytes_per_s=link_bytes_per_s(setup, name))


def fused_gains(setup: Setup) -> Iterator[tuple[str, float]]:
    """Prompts of several lengths, and a step of answering behind each."""
    model, device = get_model(setup.word("model")), get_device(setup.word("device"))
    for tokens in map(int, setup.numbers("input_tokens_swept")):
        for name, new in (("prompt", tokens), ("answer after", 1)):
            slow, fast = (
                pass_s(
                    model,
                    device,
                    new,
                    tokens,
                    ranks=int(setup.number("num_devices")),
                    is_fused=fused,
                    reached_frac=setup.number("streamed_rate_frac"),
                    start_s=setup.number("kernel_start_s"),
                )
                for fused in (False, True)
            )
            yield f"{name} {tokens}", slow / fast
