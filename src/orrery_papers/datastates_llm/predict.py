"""DataStates-LLM: saves that are copied under forward and backward against saves that training waits for."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.trained_by import settings_of, trained


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best case of all sizes, saving in every step, as "up to" has it; seldomer saves gain less."""
    ratios = {setup.name: run_ratio(setup) for setup in paper.setups.values()}
    best = max(ratios, key=lambda name: ratios[name])
    yield Prediction(
        claim="run-speedup",
        predicted=ratios[best],
        because=f"the same run of {best} with the stops of either way, saving in every step",
        differs="batches are assumed, and with them the step beside which a save stands; the paper's writes run below "
        "the rate of the links",
    )


def run_ratio(setup: Setup, steps_between: int = 1) -> float:
    """``orrery train --checkpoint lazy``: the run with blocking saves over the one with lazy saves."""
    tokens = int(setup.number("sequence_tokens")) * int(setup.number("num_global_batch"))
    given = {
        "recompute": "full",
        "framework": "megatron-deepspeed",
        "train_tokens": tokens * setup.number("num_steps"),
    }
    step_s = trained(**settings_of(setup, **given)).step_time_s
    nodes = setup.number("num_devices") / setup.number("num_devices_per_node")
    node_rate = min(setup.number("node_link_bytes_per_s"), setup.number("file_system_bytes_per_s") / nodes)
    found = trained(
        **settings_of(
            setup,
            **given,
            checkpoint="lazy",
            checkpoint_interval_s=steps_between * step_s,
            storage_bytes_per_s=node_rate,
            host_memory_bytes_per_s=setup.number("host_memory_bytes_per_s"),
            checkpoint_buffer_bytes=setup.number("host_buffer_bytes"),
        )
    )
    run_s = {row["checkpoint"]: row["run_s"] for row in found.table("checkpoints")}
    return run_s["blocking"] / run_s["lazy"]
