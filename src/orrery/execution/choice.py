"""The back ends of a deployment: what its user asks for, else what its engine's rules say, else the engine's own."""

from dataclasses import dataclass
from functools import lru_cache

from orrery.base.sources import Fact
from orrery.execution.engine import ENDLESS, BackendRule, Kind, Situation
from orrery.execution.layout import Deployment
from orrery.hardware.device import Device
from orrery.models.model import CompressedAttention, LatentAttention, Mixer, RecurrentMixer, SoftmaxAttention


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """The back end that runs steps of up to ``most_tokens`` tokens, and why."""

    backend: str
    fact: Fact | None = None  # None: asked for, or the engine's own kernels for want of a rule
    most_tokens: float = ENDLESS
    activations: str = ""
    tuned_by: str = ""


@lru_cache(maxsize=4096)
def choices(deployment: Deployment, kind: Kind, format: str, mixer: str = "") -> tuple[Choice, ...]:
    """Chosen kernels by tokens in a step, fewest first; the last one has no limit."""
    layout = deployment.layout
    at = Situation(
        generation=deployment.cluster.device.generation,
        format=format,
        mixer=mixer,
        mode=deployment.mode,
        family=deployment.model.family,
        degrees={"tp": layout.tp, "dp": layout.dp, "ep": layout.ep},
    )
    rules = tuple(r for r in deployment.engine.backends if r.kind == kind and r.accepts(at))
    if requested := getattr(deployment.backends, kind):
        same = next((r.activations for r in rules if r.backend == requested), "")
        return (Choice(backend=requested, activations=same),)
    return by_tokens(rules, deployment.engine.kernels)


def by_tokens(rules: tuple[BackendRule, ...], otherwise: str) -> tuple[Choice, ...]:
    """The first rule that holds at every number of tokens, as runs of equal choice."""
    found: list[Choice] = []
    first = 0.0
    while first < ENDLESS:
        place = next((i for i, r in enumerate(rules) if r.tokens[0] <= first <= r.tokens[1]), len(rules))
        begins = [r.tokens[0] - 1.0 for r in rules[:place] if r.tokens[0] > first]
        if place == len(rules):
            last = min(begins, default=ENDLESS)
            found.append(Choice(backend=otherwise, most_tokens=last))
        else:
            rule = rules[place]
            last = min([*begins, rule.tokens[1]])
            found.append(
                Choice(
                    backend=rule.backend,
                    fact=rule.fact,
                    most_tokens=last,
                    activations=rule.activations,
                    tuned_by=rule.tuned_by,
                )
            )
        first = last + 1.0
    return tuple(found)


def kernels_for(deployment: Deployment, kind: Kind, op: str, backend: str) -> str:
    """Name of the kernels whose constants price a back end: for experts the back end's as this engine runs it; for
    attention and products the back end's where the device has them, else the engine's."""
    engine = deployment.engine.kernels
    if kind == "moe":
        return backend if backend == engine else f"{backend}@{engine}"
    return backend if _has_constants(deployment.cluster.device, op, backend) else engine


@lru_cache(maxsize=4096)
def _has_constants(device: Device, op: str, backend: str) -> bool:
    return any(known == op and maker == backend for known, _, maker in device.calibrations)


def mixer_kind(mixer: Mixer | None) -> str:
    """The word that rules know a token mixer by; empty for recurrent ones, which have no cache to attend to."""
    if isinstance(mixer, LatentAttention):
        return "sparse-latent" if mixer.top_tokens else "latent"
    if isinstance(mixer, SoftmaxAttention):
        return "sinks" if mixer.has_sinks else "softmax"
    if isinstance(mixer, CompressedAttention):
        return "sparse-latent"
    assert mixer is None or isinstance(mixer, RecurrentMixer)
    return ""


def chosen(deployment: Deployment) -> dict[Kind, tuple[Choice, ...]]:
    """The choices of a deployment by kind: experts where it has them, attention of its first block that attends."""
    model, formats = deployment.model, deployment.formats
    found: dict[Kind, tuple[Choice, ...]] = {}
    if any(b.experts for b in model.blocks):
        found["moe"] = choices(deployment, "moe", stored_experts(deployment))
    attends = next((word for b in model.blocks if (word := mixer_kind(b.mixer))), "")
    if attends:
        found["attention"] = choices(deployment, "attention", formats.kv, attends)
    found["gemm"] = choices(deployment, "gemm", formats.weights)
    return found


def backend_words(found: tuple[Choice, ...]) -> str:
    """The back ends of a choice by name, with the tokens of a step at which they change."""
    words = [c.backend + (f" up to {c.most_tokens:.0f} tokens" if c.most_tokens < ENDLESS else "") for c in found]
    return ", then ".join(words)


def stored_experts(deployment: Deployment) -> str:
    """The format that experts are held in: the checkpoint's own, where it differs from that of the other weights.

    MXFP4 is one format to store, whatever it is multiplied by: that the back end decides.
    """
    model, weights = deployment.model, deployment.formats.weights
    held = model.experts_format if model.experts_format and weights == model.weights_format else weights
    return "mxfp4" if held.startswith("mxfp4") else held
