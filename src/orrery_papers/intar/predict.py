"""InTAR: chains of tasks in turn, streamed, and switched between both by a schedule that is fixed beforehand."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.dataflow.chain import Machine, in_turn_s, streamed_s, switched_s, traffic_bytes
from orrery.execution.dataflow.words import read_chain


def predict(paper: Paper) -> Iterator[Prediction]:
    """Geometric means over the chains."""
    setup = paper.setups["kernels"]
    machine, pieces = board(setup), int(setup.number("num_chunks"))
    found = [read_chain(words) for words in setup.word("task_chains").split(";")]
    ours = [switched_s(tasks, machine, pieces) for tasks in found]
    bare = replace(machine, buffer_bytes=0.0)
    turns = [in_turn_s(tasks, bare) for tasks in found]
    streams = [streamed_s(tasks, machine, pieces) for tasks in found]
    moved = [traffic_bytes(tasks, groups, machine) / 1e6 for tasks, (_, groups) in zip(found, ours, strict=True)]
    description = "; ".join(
        f"{each * 1e3:.3g} ms in groups of {groups} moving {mega:.3g} MB"
        for (each, groups), mega in zip(ours, moved, strict=True)
    )
    for claim, theirs, differs in (
        ("sequential", turns, "share of the memory's channels that a sequential design uses, and sizes of tensors"),
        ("dataflow", streams, "sizes of the kernels, and how a fixed share of multipliers follows from them"),
    ):
        ratios = [slow / fast for slow, (fast, _) in zip(theirs, ours, strict=True)]
        yield Prediction(
            claim=claim,
            predicted=geometric_mean(ratios),
            because="by chain " + ", ".join(f"{ratio:.3g}" for ratio in ratios) + f"; {description}",
            differs=differs,
        )


def board(setup: Setup) -> Machine:
    """All multipliers and the memory."""
    return Machine(
        flops_per_s=2.0 * setup.number("num_multipliers") * setup.number("core_clock_hz"),
        memory_bytes_per_s=setup.number("board_bandwidth_bytes_per_s"),
        buffer_bytes=setup.number("chip_buffer_bytes"),
        start_s=setup.number("kernel_start_s"),
    )
