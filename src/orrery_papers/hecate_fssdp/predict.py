"""Hecate: training layers whose busiest experts come to every rank, against experts that stay where they are."""

from collections.abc import Iterator

import numpy as np

from orrery import kernels, network
from orrery.base.extension_points import knob_array
from orrery.catalog.frameworks import get_framework
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.hidden import EXPERT
from orrery.execution.train.overlap import Floats, Pair
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery_papers.shared.trained import training_device

FRAMEWORK, ELEMENT_BYTES = "megatron-lm", 2.0


def predict(paper: Paper) -> Iterator[Prediction]:
    """The most over the loads tried."""
    (claim,) = paper.claims
    gains = {skew: gain(claim.setup, skew) for skew in skews(claim.setup)}
    best = max(gains, key=lambda skew: gains[skew])
    text = ", ".join(f"{skew:g}: {ratio:.2f}" for skew, ratio in gains.items())
    yield Prediction(
        claim=claim.id,
        predicted=gains[best],
        because=f"by exponent of the loads {text}; up to {claim.setup.number('num_gathered_experts'):.0f} experts of a "
        "layer gathered beside attention",
        differs="how uneven loads were and what the compared systems did about it: here they do nothing, where the "
        "paper's rearrange experts from time to time",
    )


def skews(setup: Setup) -> tuple[float, ...]:
    """Exponents of the loads: the set-up's alone where it states one."""
    return (setup.number("expert_skew_ratio"),) if "expert_skew_ratio" in setup.inputs else setup.numbers("skews_swept")


def gain(setup: Setup, skew: float) -> float:
    """Speedup of a layer, both passes together."""
    whole = np.array([passes_s(setup, skew, name) for name in ("expert-serial", "sparse-materialisation")])
    return float(whole[0] / whole[1])


def passes_s(setup: Setup, skew: float, name: str) -> float:
    """Forward and backward through attention and experts."""
    technique = EXPERT.get(name)
    knobs = {"most_gathered": setup.number("num_gathered_experts")} if name != "expert-serial" else {}
    values = knob_array(technique, **knobs)
    total = 3.0 * float(attention_s(setup))
    for passes in (1.0, 2.0):
        total += float(technique.rule(pair_of(setup, skew, passes), values))
    return total


def shares(setup: Setup, skew: float) -> Floats:
    """Tokens of each expert, in no order."""
    ranks = np.arange(1, int(setup.number("num_experts")) + 1, dtype=np.float64)
    share = ranks**-skew / np.sum(ranks**-skew)
    return np.random.default_rng(0).permutation(share)


def pair_of(setup: Setup, skew: float, passes: float) -> Pair:
    """A layer's experts in one direction: the fullest rank's products, and the exchange of its tokens."""
    share, ranks = shares(setup, skew), int(setup.number("num_devices"))
    tokens = setup.number("num_micro_batch") * setup.number("sequence_tokens") * setup.number("num_experts_per_token")
    fullest = max(float(part.sum()) for part in np.array_split(share, ranks)) * ranks
    hidden = setup.number("num_hidden")
    message = tokens * hidden * ELEMENT_BYTES * fullest
    products = np.asarray(experts_s(setup, tokens * fullest))
    expert_bytes = 2.0 * hidden * setup.number("num_expert_features") * ELEMENT_BYTES
    framework = get_framework(FRAMEWORK, training_device(setup), setup.word("weights_format"))
    return Pair(
        compute_s=products,
        network_s=np.asarray(2.0 * sent_s(setup, "all_to_all", message)),
        num_collectives=2.0,
        cut_compute_s=lambda cuts: products,
        cut_columns_s=lambda cuts: products,
        cut_network_s=lambda cuts: np.asarray(2.0 * cuts * sent_s(setup, "all_to_all", message / cuts)),
        backward_weight_s=(passes - 1.0) * products,
        contention_ratio=framework.contention_ratio,
        other_compute_s=np.asarray(passes * attention_s(setup)),
        expert_gather_s=np.asarray(passes * sent_s(setup, "broadcast", expert_bytes)),
        expert_share=share,
        num_ranks=ranks,
    )


def experts_s(setup: Setup, rows: float) -> float:
    """Both products of so many tokens."""
    hidden, wide = int(setup.number("num_hidden")), int(setup.number("num_expert_features"))
    return _gemm_s(setup, rows, wide, hidden) + _gemm_s(setup, rows, hidden, wide)


def attention_s(setup: Setup) -> float:
    """A forward pass of a layer's attention on each rank."""
    hidden, heads = int(setup.number("num_hidden")), int(setup.number("num_heads"))
    batch, length = int(setup.number("num_micro_batch")), int(setup.number("sequence_tokens"))
    form = setup.word("weights_format")
    op = AttentionPrefill(
        batch=batch,
        query_tokens=length,
        context_tokens=length,
        num_heads=heads,
        num_kv_heads=heads,
        head_size=hidden // heads,
        format=form,
        kv_format=form,
    )
    rows = float(batch * length)
    products = _gemm_s(setup, rows, 3 * hidden, hidden) + _gemm_s(setup, rows, hidden, hidden)
    return products + float(kernels.predict(op, training_device(setup)).time_s)


def _gemm_s(setup: Setup, m: float, n: int, k: int) -> float:
    op = Gemm(m=max(int(m), 1), n=n, k=k, format=setup.word("weights_format"), quantises_input=False)
    return float(kernels.predict(op, training_device(setup)).time_s)


def sent_s(setup: Setup, kind: str, message_bytes: float) -> float:
    """A collective of all ranks."""
    work = network.Collective(
        kind=kind,
        num_devices=int(setup.number("num_devices")),
        message_bytes=message_bytes,
        library="nccl",
        devices_per_node=int(setup.number("num_devices_per_node")),
        has_peer_to_peer=True,
    )
    return float(network.predict(work, training_device(setup)).time_s)
