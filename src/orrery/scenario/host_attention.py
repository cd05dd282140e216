"""Weights that stream from the host while the host keeps the KV cache and attends: the bound, and its run pass by pass.

The requests are all there at the start. Every pass brings all weights over the link once; prompts enter beside decodes
at the pace that keeps the host's cache full. Beside it stands the same machine in phases: all prompts of a batch first,
padded to the longest, with room for whole answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.engine.streams import stream
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.experts.host_cache import HostCached, bound_by, finite_s, limit_tokens_per_s, phased_s, played
from orrery.execution.host_rates import HOST_MEMORY_FRAC, copy_bytes_per_s
from orrery.execution.layout import Deployment
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.execution.shard import cache_of, shard
from orrery.execution.step import step
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer, deployment_json
from orrery.scenario.plan_answer import price_json
from orrery.scenario.requests import length_of
from orrery.scenario.resolve import deploy, find, formats_of, layout_of, one_device
from orrery.scenario.schema import Scenario
from orrery.serving.synthesis.lengths import draw

HOST_ATTENTION = "host-attention"

READ = frozenset(
    (
        "model",
        "assume",
        "device",
        "weights",
        "activations",
        "kv",
        "engine",
        "engine_version",
        "input_tokens",
        "output_tokens",
        "input_tokens_std",
        "output_tokens_std",
        "lengths",
        "seed",
        "max_model_len",
        "usd_per_hour",
        "expert_offload",
        "host_kv_bytes",
        "host_memory_bytes_per_s",
    )
)
"""Settings that such a run has, beside its number of requests."""

TOKENS = np.unique(np.rint(2.0 ** np.arange(0.0, 20.5, 0.5)).astype(np.int64))
"""Tokens of a pass at which its products are costed; between them times are read off a line."""

CURVE = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Requests of the curve, over the sequences that the cache holds."""

BUFFERED_LAYERS = 2
"""Layers whose weights the device holds: one that computes, and one that arrives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A run of so many requests by the closed form, beside the same in phases; answer tokens a second."""

    num_requests: int
    output_tokens_per_s: float
    phased_tokens_per_s: float

    @property
    def gain(self) -> float:
        """How many times as many tokens a second as in phases."""
        return self.output_tokens_per_s / self.phased_tokens_per_s


@dataclass(frozen=True, kw_only=True, eq=False)
class HostAttentionAnswer:
    """The bound of a deployment, its curve over requests, and one run: by the closed form, or pass by pass."""

    deployment: Deployment
    work: HostCached
    longest_tokens: int
    num_requests: int
    played_s: float | None  # of the run, pass by pass; None where it was not simulated
    num_output_tokens: int
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def limit_tokens_per_s(self) -> float:
        """Answer tokens a second of an endless run."""
        return limit_tokens_per_s(self.work)

    @property
    def bound_by(self) -> str:
        """The limit of an endless run."""
        return bound_by(self.work)

    @cached_property
    def closed_s(self) -> float:
        """Seconds of the run by the closed form, from mean lengths."""
        return finite_s(self.work, self.num_requests)

    @property
    def duration_s(self) -> float:
        """Seconds of the run: pass by pass where it was simulated."""
        return self.closed_s if self.played_s is None else self.played_s

    @property
    def output_tokens_per_s(self) -> float:
        """Answer tokens a second of the run."""
        return self.num_output_tokens / self.duration_s

    @property
    def closed_ratio(self) -> float | None:
        """Seconds of the closed form over those of all passes; None where they were not played."""
        return None if self.played_s is None else self.closed_s / self.played_s

    @cached_property
    def phased_s(self) -> float:
        """Seconds of the run in phases."""
        return phased_s(self.work, self.num_requests, self.longest_tokens)

    @property
    def gain(self) -> float:
        """How many times faster than in phases."""
        return self.phased_s / self.duration_s

    @property
    def curve(self) -> tuple[Point, ...]:
        """The closed form over the number of requests."""
        held = self.work.cache_tokens / self.work.mean_tokens
        counts = sorted({max(1, round(held * each)) for each in CURVE})
        return tuple(
            Point(
                num_requests=n,
                output_tokens_per_s=n * self.work.output_tokens / finite_s(self.work, n),
                phased_tokens_per_s=n * self.work.output_tokens / phased_s(self.work, n, self.longest_tokens),
            )
            for n in counts
        )

    @property
    def usd_per_million_tokens(self) -> float | None:
        """Dollars of the device for a million answer tokens of the run; None where no price is known."""
        return self.tariff.usd_per_million(1, 0.0, self.output_tokens_per_s)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        names = ("limit_tokens_per_s", "bound_by", "num_requests", "duration_s", "output_tokens_per_s")
        names += ("closed_s", "closed_ratio", "phased_s", "gain", "usd_per_million_tokens", "longest_tokens")
        pass_s = {
            "weights_s": self.work.weights_s,
            "host_attention_s": self.work.cache_tokens * self.work.attention_s_per_tokens,
        }
        return to_json(
            {name: getattr(self, name) for name in names}
            | {"kv_capacity_tokens": self.work.cache_tokens, "pass": pass_s}
            | {"curve": [{**to_json(point), "gain": point.gain} for point in self.curve]}
            | {"price": price_json(self.tariff), "deployment": deployment_json(self.deployment)}
            | {"settings": self.settings, "notes": self.notes}
        )


def bound(scenario: Scenario) -> HostAttentionAnswer | InfeasibleAnswer:
    """The closed form: of ``batch`` requests that are all there at the start."""
    if scenario.batch is None:
        raise ScenarioError("batch: is missing; write how many requests are there at the start, such as batch = 5000.")
    return _answer(scenario, "batch", scenario.batch, is_played=False)


def schedule(scenario: Scenario) -> HostAttentionAnswer | InfeasibleAnswer:
    """The run of ``num_requests`` requests, pass by pass."""
    if scenario.num_requests is None:
        raise ScenarioError("num_requests: is missing; write how many are there at the start: num_requests = 5000.")
    return _answer(scenario, "num_requests", scenario.num_requests, is_played=True)


def _answer(scenario: Scenario, counted: str, count: int, *, is_played: bool) -> HostAttentionAnswer | InfeasibleAnswer:
    written = scenario.written()
    if other := [name for name in written if name not in READ | {counted}]:
        raise ScenarioError(
            f"{', '.join(other)}: not of a run with expert_offload = {HOST_ATTENTION}, whose requests are all there at "
            "the start of one device and its host; leave out."
        )
    deployment, notes = _deployed(scenario)
    if lacking := _lacking(deployment):
        return InfeasibleAnswer(infeasible=lacking, notes=notes, settings=written)
    prompts, answers = _lengths(scenario, count)
    work = _work(scenario, deployment, int(np.rint(prompts.mean())), int(np.rint(answers.mean())))
    if int(prompts.max() + answers.max()) + work.block_tokens > work.cache_tokens:
        raise ScenarioError(
            f"host_kv_bytes: {work.cache_tokens:,.0f} tokens do not hold the longest request, {prompts.max():,} and "
            f"{answers.max():,}; write more."
        )
    tariff = tariff_of(deployment.cluster.device, scenario.usd_per_hour, None)
    return HostAttentionAnswer(
        deployment=deployment,
        work=work,
        longest_tokens=int(prompts.max()),
        num_requests=count,
        played_s=played(work, prompts, answers) if is_played else None,
        num_output_tokens=int(answers.sum()) if is_played else count * work.output_tokens,
        tariff=tariff,
        notes=(*notes, _padding_note(prompts), *tariff.notes),
        settings=written,
    )


def _padding_note(prompts: Ints) -> str:
    """How much of the prompts' tokens is padding in phases, which a run without phases saves."""
    longest = int(prompts.max())
    if longest == int(prompts.min()):
        return (
            f"padding: every prompt has {longest} tokens, so that phases pad nothing; --input-tokens-std spreads them"
        )
    share = 1.0 - float(prompts.mean()) / longest
    return (
        f"padding: in phases prompts of {prompts.mean():.0f} tokens, the mean, go to {longest}, {percent(share)} "
        "padding"
    )


def _deployed(scenario: Scenario) -> tuple[Deployment, tuple[str, ...]]:
    """The model on one device, whose experts count as its own: how they arrive is the answer's."""
    for name in ("host_kv_bytes", "host_memory_bytes_per_s"):
        if getattr(scenario, name) is None:
            raise ScenarioError(f"{name}: is missing; the host keeps the cache and attends: write {name} beside it.")
    plain = scenario.model_copy(
        update={"expert_offload": None, "host_kv_bytes": None, "host_memory_bytes_per_s": None, "devices": 1}
    )
    parts = find(plain, one_device(plain))
    if not any(block.experts for block in parts.model.blocks):
        raise ScenarioError(f"expert_offload: {parts.model.name} has no experts; leave expert_offload out.")
    layout, _ = layout_of(plain.model_copy(update={"tp": 1}), parts)
    formats, notes = formats_of(plain, parts)
    return deploy(plain, parts, layout, formats), (*parts.notes, *notes)


def _lacking(d: Deployment) -> Infeasible | None:
    """The missing memory where the device does not hold the layers that it works on."""
    cut, device = shard(d), d.cluster.device
    need = BUFFERED_LAYERS * cut.weight_bytes / max(1, cut.num_layers)
    have = USABLE_FRAC * device.memory_capacity_bytes
    change = "A device with more memory, or narrower weights: two layers' weights lie on it at once."
    return (
        Infeasible(what="memory of a device", need=need, have=have, unit="bytes", smallest_change=change)
        if need > have
        else None
    )


def _lengths(scenario: Scenario, count: int) -> tuple[Ints, Ints]:
    """Prompts and answers of the run; no prompt is longer than ``max_model_len`` leaves room for."""
    seed = scenario.seed or 0
    question, answer = length_of(scenario, "input"), length_of(scenario, "output")
    if most := scenario.max_model_len:
        room = most - round(answer.mean_tokens)
        if room < question.mean_tokens:
            raise ScenarioError(f"max_model_len: got {most}, less than a mean request; write more, or leave it out.")
        question = replace(question, most_tokens=room)
    return draw(question, count, stream(seed, "lengths/input")), draw(answer, count, stream(seed, "lengths/output"))


def _work(scenario: Scenario, d: Deployment, prompt_tokens: int, answer_tokens: int) -> HostCached:
    """Weights, products, attention and cache in seconds and tokens."""
    room, rate = scenario.host_kv_bytes, scenario.host_memory_bytes_per_s
    assert room is not None
    assert rate is not None
    link = copy_bytes_per_s(d.cluster.device)
    memory = rate * HOST_MEMORY_FRAC
    token_bytes = cache_of(d).bytes_per_token
    parts = [p.time_s for p in step(d, _decodes(TOKENS)).parts if p.op in ("gemm", "moe", "elementwise")]
    products: Floats = np.sum(parts, axis=0)
    alone = step(d, _prompt(prompt_tokens)).parts
    attention_s = sum(float(p.time_s[0]) for p in alone if p.op.startswith("attention"))
    return HostCached(
        weights_s=shard(d).weight_bytes / link,
        products_s=lambda tokens: float(np.interp(tokens, TOKENS, products)),
        attention_s_per_tokens=token_bytes / memory,
        cache_tokens=room / token_bytes,
        input_tokens=prompt_tokens,
        output_tokens=answer_tokens,
        prompt_attention_s_per_tokens=attention_s / prompt_tokens,
    )


def _decodes(sequences: Ints) -> Batch:
    none = np.zeros_like(sequences)
    return Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=sequences,
        decode_context_tokens=none + 1,
    )


def _prompt(tokens: int) -> Batch:
    one, none = np.array([tokens]), np.zeros(1, np.int64)
    return Batch(
        prompt_sequences=none + 1,
        prompt_tokens=one,
        prompt_context_tokens=one,
        decode_sequences=none,
        decode_context_tokens=none,
    )
