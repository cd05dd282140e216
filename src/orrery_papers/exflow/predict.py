"""ExFlow: experts placed near those that follow them, and one exchange a layer instead of two."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.experts.affinity import Affinity, transitions
from orrery.execution.experts.dispatch import ALL_TO_ALL
from orrery.execution.experts.placed import placed
from orrery.execution.experts.placement import distances, hops, near_followed
from orrery.execution.experts.routes import routes_of_law
from orrery.execution.layout import Deployment, Layout
from orrery.execution.step import step
from orrery.kernels.ops import Popularity
from orrery.models.config import parse
from orrery.models.model import Model
from orrery_papers.exflow.affinity import followed_frac_of
from orrery_papers.shared.passes import decodes
from orrery_papers.shared.setup import deployment

BASELINE = "deepspeed"

DIFFERS = (
    "the affinity: the only one that was published is that of Mixtral's solved placements; what the pre-trained GPT "
    "mixtures show is drawn as a heat map and not written, and the saving is nearly the share followed"
)


SLOW_BASELINE = (
    "the baseline: with exchanges at the links' measured rates they are a small part of a pass; DeepSpeed's dispatch "
    "pads every expert's buffer to one capacity and reorders tokens by dense products, which is not counted here; and "
    "copied context is charged for gathering every new key and value, which for one cache head an attention head is as "
    "much as many exchanges"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One model on so many devices: ways and times with experts in order, and near those that they follow."""

    num_experts: int
    num_devices: int
    num_batch: int
    hops_fracs: tuple[float, float]  # in order, placed
    routed_s: tuple[float, float]  # ways to the experts of every layer, context copied: in order and placed
    pass_s: tuple[float, float]  # a token of every sequence: results come home, and context copied with experts placed

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
        claim="throughput",
        predicted=best.throughput_ratio,
        because=f"{best.num_experts} experts on {best.num_devices} devices of {best.num_batch} tokens, {frac:.2f} "
        f"followed: a pass of {best.pass_s[0] * 1e3:.1f} ms with two exchanges a layer, {best.pass_s[1] * 1e3:.1f} ms",
        differs=SLOW_BASELINE,
    )
    near = max(every, key=lambda c: c.saved_frac)
    yield Prediction(
        claim="routing",
        predicted=near.saved_frac,
        because=f"{near.num_experts} experts on {near.num_devices} devices of {near.num_batch} tokens: "
        f"{near.hops_fracs[0]:.2f} of the ways leave a device in order, {near.hops_fracs[1]:.2f} placed",
        differs=DIFFERS,
    )
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
        claim="mixtral-hops",
        predicted=found,
        because=f"{frac:.2f} followed, as four devices show; {found / (layers - 1):.2f} of the ways leave a device",
        differs="one favourite an expert: with several, fewer of them fit beside it where a device holds one expert",
    )


def _layers(words: Setup) -> int:
    return int(words.number("num_layers"))


def cases(words: Setup) -> Iterator[tuple[float, float]]:
    """Experts and devices; a device holds one expert of a layer at least."""
    for experts in words.numbers("experts_swept"):
        for devices in words.numbers("devices_swept"):
            if devices <= experts:
                yield experts, devices


def compare(words: Setup, num_experts: int, num_devices: int, followed_frac: float) -> Iterator[Compared]:
    """Passes of the engine's own way, with both exchanges, and of copied context with experts placed; every batch."""
    served = _served(words, num_experts, num_devices, followed_frac)
    ordered, near = replace(served, expert_placement="copied-context"), replace(served, expert_placement="exflow")
    found = placed(near)
    for batch in words.numbers("batches_swept"):
        times = [_times_s(each, int(batch), int(words.number("max_context_tokens"))) for each in (ordered, near)]
        yield Compared(
            num_experts=num_experts,
            num_devices=num_devices,
            num_batch=int(batch),
            hops_fracs=(found.ordered_device_frac, found.leaves_device_frac) if found else (0.0, 0.0),
            routed_s=(times[0][0], times[1][0]),
            pass_s=(_times_s(served, int(batch), int(words.number("max_context_tokens")))[1], times[1][1]),
        )


def _times_s(served: Deployment, batch: int, context_tokens: int) -> tuple[float, float]:
    """Seconds of the tokens' ways to experts, and of a whole pass for a token of every sequence."""
    parts = step(served, decodes(np.array([batch]), np.array([context_tokens]))).parts
    host_s = served.engine.step_s + served.engine.per_sequence_s * batch
    way_s = sum(float(p.time_s[0]) for p in parts if p.name == "dispatch")
    return way_s, host_s + sum(float(p.time_s[0]) for p in parts)


def _served(words: Setup, num_experts: int, num_devices: int, followed_frac: float) -> Deployment:
    """The mixture, experts dealt out over all devices, each of which has sequences of its own."""
    found = deployment(words, model="gpt2", engine=BASELINE)
    routes = routes_of_law(num_experts, _layers(words), 0.0, followed_frac)
    return replace(
        found,
        model=mixture(words, num_experts),
        cluster=replace(found.cluster, num_devices=num_devices),
        layout=Layout(dp=num_devices, ep=num_devices),
        dispatcher=ALL_TO_ALL,
        expert_loads=Popularity(layers=routes.shares),
        expert_routes=routes,
    )


def mixture(words: Setup, num_experts: int) -> Model:
    """A GPT whose feed-forward parts are experts four times as wide as the model."""
    hidden = int(words.number("num_hidden"))
    return parse(
        {
            "model_type": "gpt-mixture",
            "num_hidden_layers": _layers(words),
            "hidden_size": hidden,
            "num_attention_heads": int(words.number("num_heads")),
            "vocab_size": int(words.number("num_vocabulary")),
            "max_position_embeddings": int(words.number("max_context_tokens")),
            "intermediate_size": 4 * hidden,
            "num_experts": num_experts,
            "num_experts_per_tok": int(words.number("num_experts_per_token")),
        },
        name=f"GPT with {num_experts} experts",
        assume="decoder",
    )
