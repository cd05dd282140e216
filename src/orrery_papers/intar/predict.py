"""InTAR: chains of tasks in turn, streamed, and switched between both by a schedule that is fixed beforehand."""

from collections.abc import Iterator, Mapping
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.own_devices import device_file

DIFFERS = {
    "sequential": "share of the memory's channels that a sequential design uses, and sizes of tensors",
    "dataflow": "sizes of the kernels, and how a fixed share of multipliers follows from them",
}


def predict(paper: Paper) -> Iterator[Prediction]:
    """Geometric means over the chains."""
    found = chains(paper.setups["kernels"])
    ours = [rows["switching"] for rows in found]
    description = "; ".join(
        f"{row.time_s * 1e3:.3g} ms in groups of {row.details['groups']} moving {row.bytes / 1e6:.3g} MB"
        for row in ours
    )
    for claim, differs in DIFFERS.items():
        ratios = [rows[claim].time_s / row.time_s for rows, row in zip(found, ours, strict=True)]
        yield Prediction(
            claim=claim,
            predicted=geometric_mean(ratios),
            because="by chain " + ", ".join(f"{ratio:.3g}" for ratio in ratios) + f"; {description}",
            differs=differs,
        )


def chains(setup: Setup) -> list[Mapping[str, KernelRow]]:
    """``orrery kernel chain``: every chain on the set-up's board, in the three ways."""
    flops_per_s = 2.0 * setup.number("num_multipliers") * setup.number("core_clock_hz")
    facts = {
        "dense_fp16_flops_per_s": flops_per_s,
        "dense_bf16_flops_per_s": flops_per_s,
        "memory_bandwidth_bytes_per_s": setup.number("board_bandwidth_bytes_per_s"),
        "last_level_cache_bytes": setup.number("chip_buffer_bytes"),
    }
    start_s = setup.number("kernel_start_s")
    with device_file(setup.word("device"), facts) as device:
        return [
            kernel_rows("chain", device=device, chain=words.strip(), launch_s=start_s)
            for words in setup.word("task_chains").split(";")
        ]
