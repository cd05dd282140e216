"""The space of a model's blocks: fewer key/value heads or none, a narrower feed-forward part or none, by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment, Layout
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.shard import shard
from orrery.models.model import Model, SoftmaxAttention
from orrery.planner.architecture.problem import Choice, Metric, Networks
from orrery.planner.architecture.toys import twin_of
from orrery.planner.blocks.library import Variant, costs, rebuilt, variants
from orrery.scenario.resolve import Question, resolve
from orrery.scenario.schema import read_scenario
from orrery.scenario.search.costs import Costs
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

LIKENED = (
    "score: a stand-in, less the squared shares of key/value heads and of feed-forward width that a block leaves out, "
    "alike in every layer; bring --scores with measured ones"
)
DEGREES = (1, 2, 4, 8)
"""Devices that the parent is cut over by tensor parallelism, to find its best layout."""


def costs_of(settings: Mapping[str, Any]) -> Costs:
    """Every variant in every layer of the scenario's model, in a decode step of its sequences."""
    at, work = _asked(settings)
    layers, sequences = at.model.num_layers, float(work.concurrency)
    each = costs(at, sequences, work.input_tokens + work.output_tokens / 2.0)
    length, whole = work.input_tokens + work.output_tokens, each[0]

    def metric(values: Sequence[float], constant: float = 0.0) -> Metric:
        return Metric(table=np.tile(np.array(values), (layers, 1)), constant=constant)

    metrics = {
        "latency": metric([c.step_s for c in each]),
        "memory": metric(
            [c.weight_bytes + c.cache_bytes * sequences * length for c in each],
            shard(at).weight_bytes - layers * whole.weight_bytes,
        ),
        "parameters": metric([c.num_parameters for c in each], at.model.num_parameters - layers * whole.num_parameters),
    }
    parent = np.zeros((1, layers), np.int64)
    return Costs(
        choices=tuple(Choice(name=f"layer {i}", alternatives=tuple(map(word, variants()))) for i in range(layers)),
        metrics=metrics,
        stand_in=metric([-c.variant.damage_ratio for c in each]),
        likened=LIKENED,
        reference_name=at.model.name,
        reference={name: float(found.of(parent)[0]) for name, found in metrics.items()},
        parent=parent,
        held_at_most_bytes=_room_bytes(at),
        toy=twin_of(np.tile([(c.variant.kv_share_frac + c.variant.ffn_share_frac) / 2.0 for c in each], (layers, 1))),
        notes=(
            f"latency: the layers' part of a decode step of {sequences:,.0f} sequences; memory: weights and the cache "
            f"of {length:,.0f} tokens a sequence, at most what one device holds",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Answer tokens a second and device with all requests at hand; ``tp`` of the parent's best layout."""

    child_tokens_per_s: float
    parent_tokens_per_s: float
    parent_tp: int

    @property
    def gain_ratio(self) -> float:
        """The child over the parent."""
        return self.child_tokens_per_s / self.parent_tokens_per_s


def served(settings: Mapping[str, Any], network: Networks) -> Served | None:
    """The network on the scenario's layout beside its parent on its best one; None where either does not fit."""
    at, work = _asked(settings)
    child = rebuilt(at.model, [variants()[int(i)] for i in network], "child")
    rates = {tp: rate(at, work, at.model, tp) for tp in DEGREES}
    tp = max(rates, key=lambda degree: rates[degree])
    child_tokens_per_s = rate(at, work, child, at.layout.tp)
    if not child_tokens_per_s or not rates[tp]:
        return None
    return Served(child_tokens_per_s=child_tokens_per_s, parent_tokens_per_s=rates[tp], parent_tp=tp)


def network_of(alternatives: Mapping[str, str]) -> Networks:
    """The network whose layers are called so."""
    places = {word(variant): i for i, variant in enumerate(variants())}
    return np.array([places[name] for name in alternatives.values()], dtype=np.int64)


def rate(at: Deployment, work: Workload, model: Model, tp: int) -> float:
    """Answer tokens a second and device with all requests at hand; 0 where it does not fit or heads do not divide."""
    if any(isinstance(b.mixer, SoftmaxAttention) and b.mixer.num_kv_heads % tp for b in model.blocks):
        return 0.0
    cluster = replace(at.cluster, num_devices=tp)
    offline = Workload(mode="offline", input_tokens=work.input_tokens, output_tokens=work.output_tokens)
    found = estimate(replace(at, model=model, layout=Layout(tp=tp), cluster=cluster), offline)
    return 0.0 if isinstance(found, Infeasible) else found.output_tokens_per_s / tp


def _room_bytes(at: Deployment) -> float:
    """Bytes for weights and cache on the fullest device: what is left beside the engine's own, whatever the model."""
    smallest = replace(at, model=rebuilt(at.model, (variants()[-1],) * at.model.num_layers, "smallest"))
    found = memory_of(smallest)
    if isinstance(found, Infeasible):
        raise ScenarioError(f"model: even its embedding alone does not fit: {found}")
    return found.kv_capacity_bytes + found.weights_bytes


def word(variant: Variant) -> str:
    """A variant as text."""
    return f"kv {variant.kv_share_frac:g} ffn {variant.ffn_share_frac:g}"


def _asked(settings: Mapping[str, Any]) -> tuple[Deployment, Workload]:
    question: Question = resolve(read_scenario(settings))
    model = question.deployment.model
    if len(model.blocks) != 1 or not isinstance(model.blocks[0].mixer, SoftmaxAttention) or model.blocks[0].experts:
        raise ScenarioError(
            f"model: {model.name} is not one stack of softmax attention and dense feed-forward parts, for which blocks "
            'are known; write another, such as model = "llama-3.1-8b".'
        )
    return question.deployment, question.workload
