"""MoETuner: Mixtral's experts in groups of even load, near those that they follow, on one node and on two."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery import kernels
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Ints
from orrery.execution.experts.affinity import Affinity, Floats, transitions
from orrery.execution.experts.placement import balanced, distances, fullest, hops, in_order
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery.kernels.ops import MoE
from orrery.models.model import Experts
from orrery_papers.exflow.predict import exchange_s
from orrery_papers.shared.passes import prompts
from orrery_papers.shared.setup import deployment

DIFFERS = (
    "how uneven and how sticky Mixtral's routing is on the authors' texts, of which only placements solved by others "
    "were found, and which links joined their nodes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placement: seconds of a pass, and what makes them."""

    pass_s: float
    fullest_ratio: float
    hops_fracs: tuple[float, float]  # that leave the device, the node


def predict(paper: Paper) -> Iterator[Prediction]:
    """Both test beds."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("multi-node", "single-node"):
        words = claims[name].setup
        served, moves = deployment(words), moves_of(words)
        distance = distances(int(words.number("num_devices")), int(words.number("num_devices_per_node")))
        plain = placed(words, served, moves, in_order(*_shape(moves), len(distance)))
        tuned = placed(words, served, moves, balanced(moves, distance))
        yield Prediction(
            claim=name, predicted=plain.pass_s / tuned.pass_s - 1.0,
            because=f"fullest device {plain.fullest_ratio:.2f} times the mean in order, {tuned.fullest_ratio:.2f} "
            f"placed; {plain.hops_fracs[1]:.2f} and {tuned.hops_fracs[1]:.2f} of the ways leave the node",
            differs=DIFFERS,
        )  # fmt: skip


def _shape(moves: Floats) -> tuple[int, int]:
    return len(moves) + 1, moves.shape[1]


def moves_of(words: Setup) -> Floats:
    """Routes through the model's layers."""
    affinity = Affinity(
        num_experts=int(words.number("num_experts")), num_layers=int(words.number("num_layers")),
        followed_frac=words.number("followed_frac"), skew_ratio=words.number("expert_skew_ratio"),
    )  # fmt: skip
    return transitions(affinity)


def placed(words: Setup, served: Deployment, moves: Floats, where: Ints) -> Placed:
    """A prompt batch of every device: its own attention, the fullest device's experts, a way from layer to layer."""
    per_node, devices = int(words.number("num_devices_per_node")), int(words.number("num_devices"))
    batch, experts = words.number("num_batch") * words.number("input_tokens"), _experts(served)
    ways, full = hops(moves, where, per_node), fullest(moves, where)
    sent_s = experts.experts_per_token * len(where) * exchange_s(words, devices, batch, *ways)
    own = prompts(np.array([int(words.number("input_tokens"))]), int(words.number("num_batch")))
    others_s = sum(float(p.time_s[0]) for p in step(served, own).parts if p.op != "moe")
    op = MoE(
        tokens=int(batch) * devices, hidden_size=experts.hidden_size, ffn_size=experts.ffn_size,
        num_experts=experts.num_experts, experts_per_token=experts.experts_per_token, ep=devices,
        format=words.word("weights_format"),
    )  # fmt: skip
    experts_s = len(where) * float(kernels.predict(op, served.cluster.device, served.engine.kernels).time_s)
    return Placed(pass_s=others_s + full * experts_s + sent_s, fullest_ratio=full, hops_fracs=ways)


def _experts(served: Deployment) -> Experts:
    return next(b.experts for b in served.model.blocks if b.experts)
