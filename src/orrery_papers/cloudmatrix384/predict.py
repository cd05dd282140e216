"""CloudMatrix384: DeepSeek-R1 in INT8 on one bus, an expert a die; prompts on few devices, answers on many."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orrery import kernels, network
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.host import wall_s
from orrery.execution.layout import Deployment, Layout
from orrery.execution.speculation import Speculation
from orrery.execution.step import step
from orrery.kernels.ops import Gemm
from orrery.models.model import Block, Experts, Model
from orrery_papers.cloudmatrix384.guesses import expected_tokens
from orrery_papers.shared.passes import decodes, halved, prompts
from orrery_papers.shared.setup import deployment

DISPATCH_BYTES, COMBINE_BYTES = 1.0, 2.0
"""Tokens go out in INT8 and come back in BF16."""

MAX_BATCH = 512

DIFFERS = (
    "kernels: none was measured on this device, and constants of other vendors' devices are borrowed for its products, "
    "its attention and the host's part of a step; the batch is the largest within the limit here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Answers within both limits, then prompts."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("decode-50ms", "decode-15ms"):
        words = claims[name].setup
        batch, tpot_s = largest_batch(words)
        yield Prediction(
            claim=name,
            predicted=batch / tpot_s,
            because=f"{batch} sequences a device, {tpot_s * 1e3:.1f} ms a token: halves take turns at the bus "
            "where that is sooner done",
            differs=DIFFERS,
        )
    words = claims["prefill"].setup
    sequences, tokens = int(words.number("num_batch")), int(words.number("input_tokens"))
    (pass_s,) = passes_s(words, prompts(np.array([tokens]), sequences))
    yield Prediction(
        claim="prefill",
        predicted=sequences * tokens / float(pass_s),
        because=f"{sequences} prompts of {tokens} tokens on each device in {pass_s * 1e3:.0f} ms",
        differs=DIFFERS,
    )


def largest_batch(words: Setup) -> tuple[int, float]:
    """The most sequences whose mean time of a token is within the limit, and that time; one where none is."""
    batches = np.arange(1, MAX_BATCH + 1)
    context = np.full(batches.size, int(words.number("max_context_tokens")))
    guesses = int(words.number("num_draft_tokens"))
    yielded = 1.0
    if guesses:
        yielded = expected_tokens(Speculation(draft_tokens=guesses, acceptance_frac=words.number("acceptance_frac")))
    tpot_s = passes_s(words, decodes((1 + guesses) * batches, context)) / yielded
    within = np.flatnonzero(tpot_s <= words.number("slo_tpot_s"))
    best = int(within[-1]) if within.size else 0
    return int(batches[best]), float(tpot_s[best])


def passes_s(words: Setup, batch: Batch) -> Floats:
    """Passes of every device over its own sequences, with the host's part; whole, or halves that take turns.

    Halves of k kernels and n exchanges each, over L layers: 2 max(k, n) and the first and last of the shorter ones.
    """
    served = serving(words)
    whole, half = (times_s(served, x) for x in (batch, halved(batch)))
    layers = served.model.num_layers
    turns_s = 2.0 * np.maximum(*half) + np.minimum(*half) / layers
    device_s = np.minimum(whole[0] + whole[1], turns_s)
    return wall_s(served.engine, device_s, batch.num_rows)


def times_s(served: Deployment, batch: Batch) -> tuple[Floats, Floats]:
    """Kernels, and exchanges. Experts are evened out by their copies: each gets as many tokens."""
    parts = step(served, batch).parts
    kernels_s = np.sum([p.time_s for p in parts if p.op != "moe" and p.group != "network"], axis=0)
    return kernels_s + experts_s(served, batch.num_tokens), exchanges_s(served, batch.num_tokens)


def experts_s(served: Deployment, tokens: Ints) -> Floats:
    """The products of a device's experts, one batch of equal ones a layer."""
    e, held = experts_of(served.model), experts_of(served.model).num_experts // served.layout.ep
    layers = sum(b.count for b in served.model.blocks if b.experts)
    rows = np.maximum(tokens * served.layout.ep * e.experts_per_token // e.num_experts, 1)
    return layers * sum(
        (
            _product_s(served, rows, n, k, held)
            for n, k in ((2 * e.ffn_size, e.hidden_size), (e.hidden_size, e.ffn_size))
        ),
        np.zeros(()),
    )


def _product_s(served: Deployment, m: Ints, n: int, k: int, count: int) -> Floats:
    op = Gemm(m=m, n=n, k=k, batch=count, format=served.formats.weights, quantises_input=False)
    return kernels.predict(op, served.cluster.device, served.engine.kernels).time_s


def exchanges_s(served: Deployment, tokens: Ints) -> Floats:
    """Tokens to their experts and back, over all layers, straight from each device to each other one."""
    model, count = served.model, served.layout.ep
    layers = sum(b.count for b in model.blocks if b.experts)
    copies = tokens.astype(np.float64) * (experts_of(model).experts_per_token * model.hidden_size)
    out, back = (_sent_s(served, count, copies * each) for each in (DISPATCH_BYTES, COMBINE_BYTES))
    return layers * (out + back)


def _sent_s(served: Deployment, count: int, message_bytes: NDArray[np.float64]) -> Floats:
    work = network.Collective(
        kind="all_to_all",
        num_devices=count,
        message_bytes=message_bytes,
        library="nccl",
        devices_per_node=served.cluster.devices_per_node,
        has_peer_to_peer=True,
    )
    return np.asarray(network.predict(work, served.cluster.device).time_s)


def serving(words: Setup) -> Deployment:
    """The model over its devices: attention on each, experts over all, with copies of the busiest ones."""
    found = deployment(words)
    count = int(words.number("num_devices"))
    cluster = replace(found.cluster, num_devices=count, devices_per_node=count)
    model = with_copies(found.model, int(words.number("num_experts")))
    return replace(found, model=model, cluster=cluster, layout=Layout(dp=count, ep=count))


def with_copies(model: Model, num_experts: int) -> Model:
    """The same model with so many experts a layer, copies included."""

    def copied(block: Block) -> Block:
        return replace(block, experts=replace(block.experts, num_experts=num_experts)) if block.experts else block

    return replace(model, blocks=tuple(copied(b) for b in model.blocks))


def experts_of(model: Model) -> Experts:
    """The routed experts of a layer."""
    return next(b.experts for b in model.blocks if b.experts)
