"""Embeddings and rerankers: one vector or score for each input, and nothing generated.

An input is a prompt that is read whole; the answer is that of a deployment whose requests end with their prompt. A
reranker's input is the question and one document together, so a list of n documents is n inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.models.model import Model, SoftmaxAttention
from orrery.planner.money import Tariff
from orrery.scenario.answer import to_json
from orrery.scenario.ask import Answer, InfeasibleAnswer, deployment_json
from orrery.scenario.ask import estimate as estimate_text
from orrery.scenario.plan_answer import memory_json, price_json
from orrery.scenario.schema import Scenario, merged
from orrery.serving.estimate import Estimate

MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddingAnswer:
    """One deployment that reads inputs: time, rate, memory, energy and money."""

    text: Answer
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def estimate(self) -> Estimate:
        """The figures of requests that end with their prompt."""
        return self.text.estimate

    @property
    def tariff(self) -> Tariff:
        """Price of a device."""
        return self.text.tariff

    @property
    def notes(self) -> tuple[str, ...]:
        """Defaults that were taken."""
        return self.text.notes

    @property
    def embeddings_per_s(self) -> float:
        """Inputs a second of the whole deployment."""
        return self.estimate.requests_per_s

    @property
    def energy_j_per_embedding(self) -> float:
        """Joules of all devices for one input."""
        return self.estimate.power_w / self.embeddings_per_s

    @property
    def usd_per_million_embeddings(self) -> float | None:
        """Dollars for a million inputs; None where no price is known."""
        e = self.estimate
        return self.tariff.usd_per_million(e.num_devices, e.power_w, self.embeddings_per_s)

    def intervals(self) -> dict[str, Interval]:
        """Intervals of latency, rate, power and dollars."""
        known = self.estimate.intervals
        names = {"latency_s": "latency_s", "embeddings_per_s": "requests_per_s", "power_w": "power_w"}
        found = {ours: known[theirs] for ours, theirs in names.items() if theirs in known}
        usd, rate = self.usd_per_million_embeddings, found.get("embeddings_per_s")
        if usd is not None and rate is not None:
            scale = usd * self.embeddings_per_s
            found["usd_per_million_embeddings"] = Interval(
                low_80=scale / rate.high_80,
                high_80=scale / rate.low_80,
                low_95=scale / rate.high_95,
                high_95=scale / rate.low_95,
                because=rate.because,
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        e = self.estimate
        return to_json(
            {
                "latency_s": e.latency_s,
                "embeddings_per_s": self.embeddings_per_s,
                "tokens_per_s": self.embeddings_per_s * self.text.question.workload.input_tokens,
                "concurrency": e.concurrency,
                "num_devices": e.num_devices,
                "memory": {**memory_json(e.memory), "peak_bytes": e.peak_memory_bytes},
                "power_w": e.power_w,
                "energy_j_per_embedding": self.energy_j_per_embedding,
                "usd_per_million_embeddings": self.usd_per_million_embeddings,
                "bound_by": e.bound_by,
                "intervals": self.intervals(),
                "price": price_json(self.tariff),
                "deployment": deployment_json(self.text.question.deployment),
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def is_encoder(model: Model) -> bool:
    """Whether every layer sees what comes after it too, and no head makes tokens."""
    mixers = [block.mixer for block in model.blocks]
    sees_all = all(isinstance(m, SoftmaxAttention) and not m.is_causal for m in mixers)
    return sees_all and model.head is None and not model.encoder


def embeds(scenario: Scenario) -> bool:
    """Whether a scenario asks for vectors or scores: by ``pooling``, or of an encoder without a length of output."""
    if scenario.pooling is not None or scenario.model is None:
        return bool(scenario.pooling)
    return scenario.output_tokens is None and scenario.trace is None and is_encoder(_model(scenario))


def _model(scenario: Scenario) -> Model:
    return get_model(scenario.model or "", scenario.assume or "")


def embeddings(scenario: Scenario) -> EmbeddingAnswer | InfeasibleAnswer:
    """The answer for a scenario whose inputs are only read."""
    for name in ("output_tokens", "trace"):
        if getattr(scenario, name) is not None:
            raise ScenarioError(f"{name}: got {getattr(scenario, name)}; pooling makes no tokens; leave it out.")
    if scenario.model is not None and scenario.max_model_len is None:
        model, tokens = _model(scenario), scenario.input_tokens or 0
        if is_encoder(model) and 0 < model.max_context_tokens < tokens:
            raise ScenarioError(
                f"input_tokens: {tokens:,} tokens are more than {model.name} reads at once; write "
                f"input_tokens = {model.max_context_tokens}, or less."
            )
    settings = {name: value for name, value in scenario.written().items() if name != "pooling"}
    found = estimate_text(merged(None, {**settings, "output_tokens": 1}))
    if isinstance(found, InfeasibleAnswer):
        return found
    return EmbeddingAnswer(text=found, settings=scenario.written())
