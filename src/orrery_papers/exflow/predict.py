"""ExFlow: experts placed near those that follow them, and one exchange a layer instead of two."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from orrery import network
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.experts.affinity import Affinity, followed_frac_of, transitions
from orrery.execution.experts.placement import distances, hops, in_order, near_followed
from orrery.execution.layout import Deployment, Layout
from orrery.execution.step import step
from orrery.models.config import parse
from orrery.models.model import Model
from orrery_papers.shared.passes import decodes
from orrery_papers.shared.setup import deployment

TOKEN_ID_BYTES, ELEMENT_BYTES = 4.0, 2.0
BASELINE = "deepspeed"

DIFFERS = (
    "the affinity: the only one that was published is that of Mixtral's solved placements; what the pre-trained GPT "
    "mixtures show is drawn as a heat map and not written, and the saving is nearly the share followed"
)


SLOW_BASELINE = (
    "the baseline: with exchanges at the links' measured rates they are a small part of a pass; DeepSpeed's dispatch "
    "pads every expert's buffer to one capacity and reorders tokens by dense products, which is not counted here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One model on so many devices: ways and times with experts in order, and near those that they follow."""

    num_experts: int
    num_devices: int
    num_batch: int
    hops_fracs: tuple[float, float]  # in order, placed
    routed_s: tuple[float, float]  # one exchange of every layer, in order and placed
    pass_s: tuple[float, float]  # a token of every sequence: two exchanges in order, one placed

    @property
    def throughput_ratio(self) -> float:
        """How many times more tokens a second."""
        return self.pass_s[0] / self.pass_s[1]

    @property
    def saved_frac(self) -> float:
        """Share of the routing's time that placement saves."""
        return 1.0 - self.routed_s[1] / self.routed_s[0]


def predict(paper: Paper) -> Iterator[Prediction]:
    """Mixtral's hops on more devices; then every size of the GPT mixture on every number of devices."""
    claims = {claim.id: claim for claim in paper.claims}
    words = claims["throughput"].setup
    frac = words.number("followed_frac") if "followed_frac" in words.inputs else learned_frac(paper)
    every = [found for e, d in cases(words) for found in compare(words, int(e), int(d), frac)]
    best = max(every, key=lambda c: c.throughput_ratio)
    yield Prediction(
        claim="throughput", predicted=best.throughput_ratio,
        because=f"{best.num_experts} experts on {best.num_devices} devices of {best.num_batch} tokens, {frac:.2f} "
        f"followed: a pass of {best.pass_s[0] * 1e3:.1f} ms with two exchanges a layer, {best.pass_s[1] * 1e3:.1f} ms",
        differs=SLOW_BASELINE,
    )  # fmt: skip
    near = max(every, key=lambda c: c.saved_frac)
    yield Prediction(
        claim="routing", predicted=near.saved_frac,
        because=f"{near.num_experts} experts on {near.num_devices} devices of {near.num_batch} tokens: "
        f"{near.hops_fracs[0]:.2f} of the ways leave a device in order, {near.hops_fracs[1]:.2f} placed",
        differs=DIFFERS,
    )  # fmt: skip
    yield _mixtral(paper)


def learned_frac(paper: Paper) -> float:
    """The affinity that Mixtral's placement on the fewest devices shows."""
    words = paper.setups["mixtral-4"]
    model_layers = float(_layers(words))
    return followed_frac_of(words.number("num_hops") / (model_layers - 1.0), int(words.number("num_devices")))


def _mixtral(paper: Paper) -> Prediction:
    """Hops of a pass on eight devices, by the affinity that four of them show."""
    words, frac = paper.setups["mixtral-8"], learned_frac(paper)
    layers, devices = _layers(words), int(words.number("num_devices"))
    affinity = Affinity(num_experts=int(words.number("num_experts")), num_layers=layers, followed_frac=frac)
    moves = transitions(affinity)
    placed = near_followed(moves, distances(devices, devices))
    found = hops(moves, placed, devices)[0] * (layers - 1)
    return Prediction(
        claim="mixtral-hops", predicted=found,
        because=f"{frac:.2f} followed, as four devices show; {found / (layers - 1):.2f} of the ways leave a device",
        differs="one favourite an expert: with several, fewer of them fit beside it where a device holds one expert",
    )  # fmt: skip


def _layers(words: Setup) -> int:
    return int(words.number("num_layers"))


def cases(words: Setup) -> Iterator[tuple[float, float]]:
    """Experts and devices; a device holds one expert of a layer at least."""
    for experts in words.numbers("experts_swept"):
        for devices in words.numbers("devices_swept"):
            if devices <= experts:
                yield experts, devices


def compare(words: Setup, num_experts: int, num_devices: int, followed_frac: float) -> Iterator[Compared]:
    """Passes of the default, with both exchanges, and of the coherent context with experts placed; every batch."""
    per_node, layers = int(words.number("num_devices_per_node")), _layers(words)
    default, placed = _ways(num_experts, layers, num_devices, per_node, followed_frac)
    for batch in words.numbers("batches_swept"):
        first, second = (layers * exchange_s(words, num_devices, batch, *way) for way in (default, placed))
        kernels = kernels_s(words, num_experts, num_devices, int(batch))
        gathered = collective_s(words, "all_gather", num_devices, num_devices * batch * TOKEN_ID_BYTES)
        yield Compared(
            num_experts=num_experts, num_devices=num_devices, num_batch=int(batch), hops_fracs=(default[0], placed[0]),
            routed_s=(first, second), pass_s=(kernels + 2.0 * first, kernels + second + gathered),
        )  # fmt: skip


@cache
def _ways(
    num_experts: int, layers: int, num_devices: int, per_node: int, followed_frac: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Shares of the ways that leave a device and a node, with experts in order and placed."""
    moves = transitions(Affinity(num_experts=num_experts, num_layers=layers, followed_frac=followed_frac))
    near = near_followed(moves, distances(num_devices, min(per_node, num_devices)))
    return hops(moves, in_order(layers, num_experts, num_devices), per_node), hops(moves, near, per_node)


def exchange_s(words: Setup, num_devices: int, batch: float, device_frac: float, node_frac: float) -> float:
    """One exchange in which those shares of the tokens leave their device, and their node.

    A plain one sends (n - 1)/n of its message, and (n - g)/n of it to other nodes: the one that is slower counts.
    """
    inside = min(int(words.number("num_devices_per_node")), num_devices)
    message = batch * words.number("num_hidden") * ELEMENT_BYTES
    scales = [device_frac * num_devices / (num_devices - 1.0)]
    if num_devices > inside:
        scales = [node_frac * num_devices / (num_devices - inside)]
    return collective_s(words, "all_to_all", num_devices, message * max(scales))


def collective_s(words: Setup, kind: str, num_devices: int, message_bytes: float) -> float:
    """One collective on the set-up's links."""
    work = network.Collective(
        kind=kind, num_devices=num_devices, message_bytes=message_bytes, library="nccl",
        devices_per_node=int(words.number("num_devices_per_node")), has_peer_to_peer=True,
    )  # fmt: skip
    return float(network.predict(work, get_device(words.word("device"))).time_s)


def kernels_s(words: Setup, num_experts: int, num_devices: int, batch: int) -> float:
    """A pass for a token of every sequence, without its exchanges."""
    served = _served(words, num_experts, num_devices)
    steps = decodes(np.array([batch]), np.array([int(words.number("max_context_tokens"))]))
    host_s = served.engine.step_s + served.engine.per_sequence_s * batch
    return host_s + sum(float(p.time_s[0]) for p in step(served, steps).parts if p.group != "network")


def _served(words: Setup, num_experts: int, num_devices: int) -> Deployment:
    """The mixture, experts dealt out over all devices, each of which has sequences of its own."""
    found = deployment(words, model="gpt2", engine=BASELINE)
    cluster = replace(found.cluster, num_devices=num_devices)
    layout = Layout(dp=num_devices, ep=num_devices)
    return replace(found, model=mixture(words, num_experts), cluster=cluster, layout=layout)


def mixture(words: Setup, num_experts: int) -> Model:
    """A GPT whose feed-forward parts are experts four times as wide as the model."""
    hidden = int(words.number("num_hidden"))
    return parse(
        {
            "model_type": "gpt-mixture", "num_hidden_layers": _layers(words), "hidden_size": hidden,
            "num_attention_heads": int(words.number("num_heads")), "vocab_size": int(words.number("num_vocabulary")),
            "max_position_embeddings": int(words.number("max_context_tokens")), "intermediate_size": 4 * hidden,
            "num_experts": num_experts, "num_experts_per_tok": int(words.number("num_experts_per_token")),
        },
        name=f"GPT with {num_experts} experts", assume="decoder",
    )  # fmt: skip
