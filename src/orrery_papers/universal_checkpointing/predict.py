"""Universal checkpointing: save, convert and load times of ``orrery train --checkpoint reshape``."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.described import config_file
from orrery_papers.shared.trained_by import settings_of, trained

BECAUSE = {
    "reconfiguration_share": "convert and load over the mean time between failures",
    "conversion_speedup": "one process that converts alone, over all processes on all nodes",
    "save_time": "14 bytes a parameter over the storage of all nodes, packed by every process into a file each",
    "convert_time": "14 bytes a parameter read and 12 written, by every process, a file for each state of a parameter",
    "load_time": "12 bytes a parameter read once, and all files of a stage opened by each process",
    "all_time": "save, convert and load",
}

PACKING = (
    "rates of packing and opening are assumed and the same everywhere: on few nodes processes take longer than that, "
    "for their reads and writes wait for each other"
)
LARGEST_SAVE = (
    "its bytes were written in less time than they take at the stated rate of a node: that rate is a lower one than "
    "this save's, or fewer bytes of a parameter were written"
)
DIFFERS = {
    "conversion_speedup": "one process reads here as fast as a whole node; the pace of the compared tool is not known",
    "save_time": PACKING,
    "convert_time": PACKING,
    "load_time": PACKING,
    "all_time": PACKING,
}
"""Explanations of differences, by metric."""

MIXTRAL: Mapping[str, Any] = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""Mixtral 8x7B, but for the number of its experts."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every row of the table, and the headlines about the largest model."""
    for claim in paper.claims:
        if claim.metric in BECAUSE:
            yield Prediction(
                claim=claim.id,
                predicted=answer(claim),
                because=BECAUSE[claim.metric],
                differs=LARGEST_SAVE if claim.id == "1t-save" else DIFFERS.get(claim.metric, ""),
            )


def answer(claim: Claim) -> float:
    """The claim's metric."""
    found = times_s(claim.setup)
    again_s = found["convert"] + found["load"]
    return {
        "reconfiguration_share": again_s / claim.setup.number("mean_between_failures_s"),
        "conversion_speedup": found["convert by one process"] / found["convert"],
        "save_time": found["save"],
        "convert_time": found["convert"],
        "load_time": found["load"],
        "all_time": found["save"] + again_s,
    }[claim.metric]


def times_s(setup: Setup) -> Mapping[str, float]:
    """Seconds of every step, on the same nodes and under the same layout before and after."""
    return _times_s(tuple(sorted(job(setup).items())))


@cache
def _times_s(settings: tuple[tuple[str, Any], ...]) -> Mapping[str, float]:
    return {row["step"]: row["time_s"] for row in trained(**dict(settings)).table("reshape")}


def job(setup: Setup) -> dict[str, Any]:
    """The set-up's model on all devices of its nodes, a sequence for each replica."""
    each = int(setup.number("num_devices_per_node"))
    devices = each * int(setup.number("num_nodes"))
    degrees = {name: int(value) for name, value in re.findall(r"([a-z]+)(\d+)", setup.word("layout"))}
    replicas = devices // (degrees["tp"] * degrees.get("pp", 1))
    given: dict[str, Any] = {}
    if experts := int(setup.number("num_experts")):
        given["model"] = config_file({**MIXTRAL, "num_local_experts": experts}, setup.name)
    return settings_of(
        setup,
        **given,
        devices=devices,
        global_batch=replicas * degrees.get("pp", 1),
        sharding="zero1",
        recompute="full",
        framework="megatron-deepspeed",
        train_tokens=1e11,
        node_mtbf_s=1e7,
        storage_bytes_per_s=setup.number("storage_bytes_per_s"),
        checkpoint="reshape",
        reshape_to=",".join(f"{name}={degrees.get(name, 1)}" for name in ("tp", "pp")) + f",dp={replicas}",
    )
