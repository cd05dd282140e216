"""Ladder residual: static batches on eight devices, with all-reduces in turn or under the next block."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from orrery import network
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Claim, Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.shard import shard
from orrery_papers.shared.passes import Pass, decodes, overlapped_s, pass_of, prompts, with_network
from orrery_papers.shared.setup import deployment

KEY = "ladder-residual"
INPUT_TOKENS, OUTPUT_TOKENS = 1024, 512  # see [unstated] lengths
TABLE_BATCH = 4  # see [unstated] batch_of_p2p_table
HEADLINE_BATCH = 1
CONTEXTS = 8  # contexts at which an answer's steps are costed
THROUGH_HOST = "l40s"
"""The catalogue's device whose collectives were measured without peer-to-peer copies."""

BECAUSE = {
    "throughput": "answer tokens over prompt and answer time, blocks' all-reduces under the next block",
    "baseline_throughput": "answer tokens over prompt and answer time, all-reduces in turn",
    "throughput_ratio": "ladder over standard, same batch",
    "throughput_increase": "ladder over standard, same batch",
    "prefill_time_reduction": "prompt alone, ladder against standard",
    "decode_time_reduction": "answer alone, ladder against standard",
    "communication_share": "all-reduces of an answer's steps over their time",
}


SLOWER = (
    "the engine's own kernels are slower than those measured here, the more so with more sequences "
    "(the standard transformer's tokens per second show it)"
)
DIFFERS = {
    "throughput": SLOWER,
    "baseline_throughput": SLOWER,
    "throughput_ratio": SLOWER,
    "throughput_increase": SLOWER,
    "prefill_time_reduction": "the paper's prompts hide next to none of their all-reduces; here they hide them all "
    "over NVLink, and few where copies pass the host, which take longer than the kernels",
    "communication_share": "the engine and batch behind the share are not written, and waiting for the slowest "
    "device is not modelled",
}
"""Explanations of a difference, by metric."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every table, and the headlines at the batch sizes that they are about."""
    for claim in paper.claims:
        if claim.id == "parallel-block":
            yield Prediction(
                claim=claim.id,
                predicted=side_by_side(serving(claim.setup), int(claim.setup.number("num_batch"))),
                because="attention and feed-forward share one all-reduce, so half of them are left",
                differs="one norm and the launches that the merged block saves are not taken off",
            )
        elif claim.metric in BECAUSE:
            yield Prediction(
                claim=claim.id,
                predicted=answer(claim),
                because=BECAUSE[claim.metric],
                differs=DIFFERS.get(claim.metric, ""),
            )


def answer(claim: Claim) -> float:
    """The claim's metric."""
    if claim.id == "tp16-405b":
        return min(_answer(claim, int(b)) for b in claim.setup.numbers("batches_swept"))
    default = HEADLINE_BATCH if claim.id == "headline" or claim.metric == "communication_share" else TABLE_BATCH
    return _answer(claim, int(claim.setup.number("num_batch", default)))


def _answer(claim: Claim, batch: int) -> float:
    t = times(serving(claim.setup), batch, "without" not in claim.setup.word("link_within_node"))
    made = batch * OUTPUT_TOKENS
    return {
        "throughput": made / (t["prefill"] + t["decode"]),
        "baseline_throughput": made / (t["plain_prefill"] + t["plain_decode"]),
        "throughput_ratio": (t["plain_prefill"] + t["plain_decode"]) / (t["prefill"] + t["decode"]),
        "throughput_increase": (t["plain_prefill"] + t["plain_decode"]) / (t["prefill"] + t["decode"]) - 1.0,
        "prefill_time_reduction": 1.0 - t["prefill"] / t["plain_prefill"],
        "decode_time_reduction": 1.0 - t["decode"] / t["plain_decode"],
        "communication_share": t["network"] / t["plain_decode"],
    }[claim.metric]


def serving(words: Setup) -> Deployment:
    """gpt-fast: the vendor's collectives, and no time of the host (see [unstated] engine_overheads)."""
    return _deployed(words.name, words.word("model"), words.word("layout"))


@cache
def _deployed(setup: str, model: str, layout: str) -> Deployment:
    """One object for equal deployments, so that what is known of them keeps."""
    found = deployment(get_paper(KEY).setups[setup], model=model, layout=layout, engine="litgpt")
    engine = replace(
        found.engine,
        kernels="",
        runs_modules=False,  # compiled, and replayed as a graph
        step_s=0.0,
        per_sequence_s=0.0,
        per_layer_s=0.0,
        launch_s=0.0,
        memory_ratio=1.0,
        compute_ratio=1.0,
    )
    return replace(found, engine=engine)


@cache
def times(d: Deployment, batch: int, has_peer_to_peer: bool) -> dict[str, float]:
    """Prompt and answer of a batch, standard ("plain_") and ladder, and the all-reduces of the answer."""
    context = np.linspace(INPUT_TOKENS + 1, INPUT_TOKENS + OUTPUT_TOKENS, CONTEXTS).astype(np.int64)
    first = pass_of(d, prompts(np.array([INPUT_TOKENS]), batch))
    later = pass_of(d, decodes(np.full(CONTEXTS, batch), context))
    if not has_peer_to_peer:
        first = with_network(first, through_host_s(d, np.array([batch * INPUT_TOKENS])))
        later = with_network(later, through_host_s(d, np.full(CONTEXTS, batch)))
    return {
        "plain_prefill": float(first.total_s[0]),
        "prefill": float(ladder_s(first)[0]),
        "plain_decode": OUTPUT_TOKENS * float(later.total_s.mean()),
        "decode": OUTPUT_TOKENS * float(ladder_s(later).mean()),
        "network": OUTPUT_TOKENS * float(later.network_s.mean()),
        "prefill_network": float(first.network_s[0]),
    }


def side_by_side(d: Deployment, batch: int) -> float:
    """Gain of a model whose attention and feed-forward run side by side: every second all-reduce goes."""
    t = times(d, batch, True)
    plain_s = t["plain_prefill"] + t["plain_decode"]
    return plain_s / (plain_s - (t["network"] + t["prefill_network"]) / 2.0) - 1.0


def ladder_s(done: Pass) -> Floats:
    """The passes with the changed residual stream."""
    return overlapped_s(done, "ladder-residual")


def through_host_s(d: Deployment, tokens: Ints) -> Floats:
    """All-reduces of a pass where every copy goes through the host's memory, over the device's own PCIe link."""
    host, measured = d.cluster.device.host, get_device(THROUGH_HOST)
    bus = replace(measured, scaleup=replace(measured.scaleup, each_way_bytes_per_s=host.each_way_bytes_per_s))
    moved_bytes = (tokens * 2.0 * d.model.hidden_size).astype(np.float64)
    work = network.Collective(
        kind="all_reduce",
        num_devices=d.layout.tp,
        message_bytes=moved_bytes,
        library="nccl",
        devices_per_node=d.cluster.devices_per_node,
        has_peer_to_peer=False,
    )
    return np.asarray(network.predict(work, bus).time_s) * shard(d).num_reduces
