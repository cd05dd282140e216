"""Hosts and devices: a model's kernels through a launch queue, and the batch at which the device takes over."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.shared.kernel_rows import kernel_rows

SYSTEMS = ("a100", "h100", "gh200")

HOST = (
    "neither an operator's time on each host nor the length of inputs was found: slow hosts and short inputs turn "
    "later ([unstated] on_paper)"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Prefill of the decoder at a large batch, then the turns of the encoder."""
    llama = paper.setups["llama"]
    batch = int(llama.number("num_batch"))
    for other in ("h100", "a100"):
        theirs, ours = (queue(llama, paper.setups[name], batch) for name in (other, "gh200"))
        yield Prediction(
            claim=f"prefill-{other}",
            predicted=theirs.time_s / ours.time_s,
            because=f"batch {batch}: {theirs.time_s * 1e3:.2f} ms, {percent(theirs.details['idle_frac'])} idle, "
            f"against {ours.time_s * 1e3:.2f} ms, {percent(ours.details['idle_frac'])} idle",
            differs="prompts, batch and the limits of power of these machines were not found",
        )
    encoder = paper.setups["encoder"]
    turns = {name: turn(encoder, paper.setups[name]) for name in SYSTEMS}
    words = ", ".join(f"{name} {batch:g}" for name, batch in turns.items())
    most = turns["gh200"] / min(turns["a100"], turns["h100"])
    yield Prediction(claim="turn-ratio", predicted=most, because=f"batches of the turn: {words}", differs=HOST)
    for name, at in turns.items():
        yield Prediction(claim=f"turn-{name}", predicted=at, because=f"batches of the turn: {words}", differs=HOST)


def turn(work: Setup, system: Setup) -> int:
    """The first batch at which kernels queue; 0 where none does."""
    return int(queue(work, system, 1).details["turn_batch"])


def queue(work: Setup, system: Setup, batch: int) -> KernelRow:
    """All layers of the model, kernel by kernel, launched by the system's host: ``orrery kernel launch-queue``."""
    host = system.word("launch_host")
    rows = kernel_rows(
        "launch-queue",
        device=system.word("device"),
        model=work.word("model"),
        hosts=host,
        batch=batch,
        query_tokens=int(work.number("input_tokens")),
    )
    return rows[host]
