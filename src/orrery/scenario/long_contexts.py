"""Cost of long contexts: sequences at once, prompts, decode steps and changes between users, by length and cache.

One row for each length, format of the cache and way of keeping less of it; the whole cache stands beside every other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.compression import NOTHING, Compression
from orrery.execution.long_context import LongContext, long_context
from orrery.execution.memory import Infeasible
from orrery.models.model import Model
from orrery.scenario.amounts import amount
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.clock import at_clock
from orrery.scenario.kept_cache import compression_of
from orrery.scenario.resolve import deploy, find, formats_of, layout_of, one_device, words
from orrery.scenario.schema import Scenario

KEPT = ("kv_kept_tokens", "kv_kept_bytes", "kv_kept_layers", "kv_selection", "kv_budget_tokens")

READ = frozenset(
    (
        *("context_lengths", "model", "assume", "device", "devices", "tp", "pp", "dp", "ep", "cp", "clock_frac"),
        *("weights", "activations", "kv", "engine", "engine_version", "moe_backend", "attention_backend"),
        *("gemm_backend", "max_num_seqs", "max_num_batched_tokens", "max_model_len", "gpu_memory_utilization"),
        *("expert_loads", "expert_placement", "num_redundant_experts", *KEPT),
    )
)
"""Settings of a deployment and its cache; every other one is of traffic, or of what is asked about it."""

MAX_LENGTHS, MAX_TOKENS = 64, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The four costs of one length, format of the cache, and way of keeping it."""

    kv: str
    compression: str  # "all", or the settings that keep less
    costs: LongContext


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongContextAnswer:
    """The table of one deployment."""

    model: str
    device: str
    layout: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """The rows in the shape that scripts rely on; SI units."""
        rows = [{"kv": row.kv, "compression": row.compression, **to_json(row.costs)} for row in self.rows]
        named = {"model": self.model, "device": self.device, "layout": self.layout}
        return {"contexts": rows, "deployment": named, "settings": to_json(self.settings), "notes": list(self.notes)}


def long_contexts(scenario: Scenario) -> LongContextAnswer | InfeasibleAnswer:
    """The table that ``context_lengths`` asks for."""
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: a table over context_lengths has a prompt of each length, and no traffic; leave out."
        )
    plain = scenario.model_copy(update={"kv": None, "context_lengths": None, **dict.fromkeys(KEPT)})
    parts = find(plain, one_device(plain))
    parts = replace(parts, device=at_clock(plain, parts.device))
    layout, layout_notes = layout_of(plain, parts)
    lengths = lengths_of(scenario, scenario.max_model_len or parts.model.max_context_tokens)
    rows: list[Row] = []
    notes = [*parts.notes, *layout_notes]
    for kv in words(scenario.kv or "") or (None,):
        formats, format_notes = formats_of(plain.model_copy(update={"kv": kv}), parts)
        deployment = deploy(plain, parts, layout, formats)
        notes += format_notes
        for tokens in lengths:
            for named, compression in _ways(scenario.model_copy(update={"kv": kv}), deployment.model):
                found = long_context(deployment, tokens, compression)
                if isinstance(found, Infeasible):
                    return InfeasibleAnswer(infeasible=found, notes=tuple(notes), settings=written)
                rows.append(Row(kv=formats.kv, compression=named, costs=found))
    return LongContextAnswer(
        model=parts.model.name,
        device=parts.device.name,
        layout=str(layout),
        rows=tuple(rows),
        notes=tuple(dict.fromkeys(notes)),
        settings=written,
    )


def _ways(scenario: Scenario, model: Model) -> Iterator[tuple[str, Compression]]:
    """The whole cache, then what is asked to be kept of it."""
    yield "all", NOTHING
    given = {name: value for name in KEPT if (value := getattr(scenario, name)) is not None}
    if given:
        yield ", ".join(f"{name} = {value}" for name, value in given.items()), compression_of(scenario, model)


def lengths_of(scenario: Scenario, longest: int) -> tuple[int, ...]:
    """The lengths, which the model has to take."""
    text = scenario.context_lengths or ""
    numbers = [_tokens(word) for word in text.split(",")]
    if not 0 < len(numbers) <= MAX_LENGTHS or any(n is None or not 1 <= n <= MAX_TOKENS for n in numbers):
        raise ScenarioError(
            f"context_lengths: got {text!r}; write up to {MAX_LENGTHS} lengths in tokens, such as 4096,50000."
        )
    found = tuple(dict.fromkeys(round(n) for n in numbers if n is not None))
    if longest and max(found) > longest:
        raise ScenarioError(
            f"context_lengths: {max(found):,} tokens are more than the context of {longest:,}; write less, or "
            f"max_model_len = {max(found)} where the server is started with it."
        )
    return found


def _tokens(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return amount(word, "context_tokens")
