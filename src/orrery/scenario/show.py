"""The catalogue as tables for any window."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from math import isnan
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.sources import Fact
from orrery.base.units import UNIT_WORDS, figures, text
from orrery.catalog.api_prices import api_price_names, get_api_price
from orrery.catalog.devices import describe, device_names, get_device
from orrery.catalog.engines import engine_names, get_engine
from orrery.catalog.frameworks import framework_names, get_framework
from orrery.catalog.models import get_model, model_names, other_models, published_parameters, resolve
from orrery.catalog.places import get_place, least_round_trip_s, place_names, published_round_trip_s
from orrery.catalog.prices import price_of
from orrery.catalog.terms import get_term, terms
from orrery.catalog.traces import load_trace, stats, trace_names
from orrery.catalog.workloads import get_workload, workload_names
from orrery.execution.train.recipe_registry import get_recipe, known_recipes
from orrery.numerics.registry import get_format, known_formats
from orrery.scenario.answer import to_json
from orrery.scenario.levers.registry import get_lever, levers, technique_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one kind of thing; ``title`` says what, ``notes`` what to know about it."""

    kind: str
    title: str
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """``{"devices": [...]}``, rows as objects."""
        return {self.kind: to_json(self.rows), "notes": list(self.notes)}


def rows_of(tables: Iterable[Table], kind: str) -> tuple[Mapping[str, Any], ...]:
    """Rows of the table of that kind; ScenarioError names the kinds that there are."""
    found = {t.kind: t.rows for t in tables}
    if kind not in found:
        raise ScenarioError(f"table: there is no {kind!r}; write {' or '.join(map(repr, found)) or 'a technique'}.")
    return found[kind]


def show_all(kind: str) -> Table:
    """List every entry of a kind, a row each."""
    return _KINDS[kind][0]()


def show_one(kind: str, name: str) -> Table:
    """One thing, a row for each fact."""
    return _KINDS[kind][1](name)


def _shown(thing: object, *names: str) -> dict[str, Any]:
    """A row of attributes."""
    return {name: getattr(thing, name) for name in names}


def _devices() -> Table:
    rows = [
        {
            "name": d.name,
            "title": d.title,
            "vendor": d.vendor,
            "kind": d.kind,
            "generation": d.generation,
            "memory_capacity_bytes": d.memory_capacity_bytes,
            "memory_bandwidth_bytes_per_s": d.memory_bandwidth_bytes_per_s,
            "dense_16bit_flops_per_s": max(d.dense_flops_per_s.get(f, 0.0) for f in ("bf16", "fp16")),
            "power_limit_w": d.power_limit_w,
        }
        for d in map(get_device, device_names())
    ]
    return Table(kind="devices", title="Devices", rows=tuple(rows), notes=("`orrery show device NAME` gives sources.",))


def _device(name: str) -> Table:
    device = get_device(name)
    rows = [_shown(row, *(f.name for f in fields(row))) for row in describe(device)]
    return Table(kind="devices", title=f"{device.name}: {device.title}", rows=tuple(rows), notes=device.notes)


def _models() -> Table:
    names = (
        "name",
        "family",
        "num_parameters",
        "num_active_parameters",
        "num_layers",
        "max_context_tokens",
        "weights_format",
    )
    rows = [_shown(m, *names) for m in map(get_model, model_names())]
    return Table(kind="models", title="Models", rows=tuple(rows), notes=_beside_text())


def _beside_text() -> tuple[str, ...]:
    other = [f"{kind}: {', '.join(names)}" for kind, names in other_models().items()]
    return ("Any config.json works in place of a name.", "`orrery estimate` answers for others, too.", *other)


def _model(name: str) -> Table:
    model = get_model(name)
    rows: list[dict[str, Any]] = [
        {"fact": key, "value": getattr(model, key)}
        for key in (
            "name",
            "family",
            "num_parameters",
            "num_active_parameters",
            "num_layers",
            "hidden_size",
            "vocab_size",
            "max_context_tokens",
            "weights_format",
            "is_head_tied",
            "embedding_parameters",
            "tower_parameters",
            "resting_parameters",
            "draft_parameters",
        )
    ]
    for block in model.blocks:
        mixer = type(block.mixer).__name__ if block.mixer else "no mixer"
        experts = f", {block.experts.num_experts} experts" if block.experts else ""
        rows.append({"fact": f"block {block.name}", "value": f"{block.count} x ({mixer}{experts})"})
    rows += [{"fact": key, "value": where} for key, where in model.published]
    if model.name in model_names() and (fact := published_parameters(resolve(name)[0])):
        rows.append({"fact": "published", "value": replace(fact, value=f"{fact.value:,.0f}").cite()})
    return Table(kind="models", title=model.name, rows=tuple(rows))


def _formats() -> Table:
    names = ("name", "bits_per_element", "kind", "weight_only", "title", "source")
    rows = [_shown(f, *names) for f in known_formats().values()]
    return Table(kind="formats", title="Number formats", rows=tuple(rows))


def _format(name: str) -> Table:
    found = get_format(name)
    rows = [{"fact": f.name, "value": getattr(found, f.name)} for f in fields(found)]
    rows.append({"fact": "bits_per_element", "value": found.bits_per_element})
    return Table(kind="formats", title=found.title, rows=tuple(rows))


def _techniques() -> Table:
    """List the techniques that a command takes, each with the command."""
    rows = [
        {"name": x.name, "use": x.command, "gains": x.gains, "costs": x.costs, "claims": ", ".join(_claims(x.name))}
        for x in sorted(levers().values(), key=lambda x: (x.command.split()[1], x.extension_point, x.name))
    ]
    text = "`orrery what-if NAME` computes your deployment without and with one of them, where it is of one."
    return Table(kind="techniques", title="Techniques, and the commands that use them", rows=tuple(rows), notes=(text,))


def _claims(name: str) -> tuple[str, ...]:
    found = technique_named(name)
    return found.claims if found else ()


def _technique(name: str) -> Table:
    lever, found = get_lever(name), technique_named(name)
    rows: list[dict[str, Any]] = [{"fact": "name", "value": lever.name}, {"fact": "use", "value": lever.command}]
    if lever.questions:
        rows.append({"fact": "what if", "value": f"orrery what-if {name}"})
    rows += [
        {"fact": key, "value": value} for key in ("extension_point", "gains", "costs") if (value := getattr(lever, key))
    ]
    rows += [{"fact": "measure", "value": what} for what in lever.measure]
    if found:
        rows += [
            {"fact": key, "value": ", ".join(sorted(names))}
            for key, names in (("claims", found.claims), ("excludes", found.excludes))
            if names
        ]
        rows += [{"fact": f"knob {f.name}", "value": getattr(found.knobs(), f.name)} for f in fields(found.knobs)]
    return Table(kind="techniques", title=name, rows=tuple(rows))


def _engines() -> Table:
    names = (
        "name",
        "memory_utilization_frac",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_tokens",
        "is_utilization_of_free",
    )
    rows = [_shown(e, *names) for e in map(get_engine, engine_names())]
    return Table(kind="engines", title="Serving engines, newest known defaults", rows=tuple(rows))


def _engine(name: str) -> Table:
    engine = get_engine(name)
    return Table(kind="engines", title=engine.name, rows=tuple(_fact_row(f) for f in engine.facts.values()))


def _frameworks() -> Table:
    rows = [
        {
            "name": f.name,
            "sharding": f.sharding,
            "recompute": f.recompute,
            "schedule": f.schedule,
            "bytes_per_parameter": f.weights_bytes + f.gradient_bytes + f.master_bytes + f.moments_bytes,
            "has_fused_attention": f.has_fused_attention,
            "overlaps_gradients": f.overlaps_gradients,
            "overlaps_parameters": f.overlaps_parameters,
        }
        for f in map(get_framework, framework_names())
    ]
    return Table(kind="frameworks", title="Training frameworks, their defaults", rows=tuple(rows))


def _framework(name: str) -> Table:
    found = get_framework(name)
    return Table(
        kind="frameworks",
        title=found.name,
        rows=tuple(_fact_row(f) for f in found.facts.values()),
        notes=("Measured constants are those of any device; a device's generation has its own.",),
    )


def _recipes() -> Table:
    names = ("name", "title", "forward_format", "input_gradient_format", "weight_gradient_format", "wide_layers_frac")
    rows = [_shown(r, *names) for r in known_recipes().values()]
    return Table(kind="recipes", title="Precision recipes of training", rows=tuple(rows))


def _recipe(name: str) -> Table:
    found = get_recipe(name)
    hidden = ("name", "title", "sources")
    rows = [{"fact": f.name, "value": getattr(found, f.name)} for f in fields(found) if f.name not in hidden]
    rows = [{**row, "value": ", ".join(row["value"])} if row["fact"] == "aliases" else row for row in rows]
    return Table(kind="recipes", title=f"{found.name}: {found.title}", rows=tuple(rows), notes=found.sources)


def _prices() -> Table:
    rows = [
        {
            "name": name,
            "usd_per_device_hour": p.usd_per_device_hour,
            "low": p.low,
            "high": p.high,
            "as_of": p.as_of.isoformat(),
            "kind": p.kind,
            "is_stale": p.is_stale,
            "note": p.note,
        }
        for name in device_names()
        if (p := price_of(name))
    ]
    return Table(
        kind="prices",
        title="Dollars for one device and hour",
        rows=tuple(rows),
        notes=("Give your own with --usd-per-hour.",),
    )


def _price(name: str) -> Table:
    device = get_device(name)
    price = price_of(device.name)
    if price is None:
        raise ScenarioError(f"No price is known for {device.name}; give your own with --usd-per-hour.")
    rows = [
        {"fact": "usd_per_device_hour", "value": price.usd_per_device_hour, "basis": "chosen", "note": price.note},
        *(_fact_row(f) for f in price.facts),
    ]
    return Table(kind="prices", title=device.name, rows=tuple(rows), notes=device.notes)


def _api_prices() -> Table:
    rows = [
        {"name": p.name, **{f.name: f.value for f in p.facts}, "as_of": p.as_of}
        for p in map(get_api_price, api_price_names())
    ]
    return Table(
        kind="api-prices",
        title="Dollars that public APIs charge for a million tokens",
        rows=tuple({k: row.get(k) for k in ("name", *_API_KINDS, "as_of")} for row in rows),
        notes=("Compare a plan with one: orrery plan --api-price NAME.",),
    )


def _places() -> Table:
    rows: list[dict[str, Any]] = [
        {"name": p.name, "latitude": p.at[0], "longitude": p.at[1], "utc_offset_hours": p.utc_offset_s / 3600.0}
        for p in map(get_place, place_names())
    ]
    return Table(
        kind="places",
        title="Places whose round trips to each other are published",
        rows=tuple(rows),
        notes=("Round trips from one of them: orrery show places NAME.",),
    )


def _place(name: str) -> Table:
    found = get_place(name)
    rows: list[dict[str, Any]] = [
        {
            "to": other.name,
            "round_trip_s": published_round_trip_s(found.name, other.name),
            "light_in_fibre_s": least_round_trip_s(found.at, other.at),
        }
        for other in map(get_place, place_names())
    ]
    return Table(kind="places", title=found.name, rows=tuple(rows), notes=tuple(f.cite() for f in found.facts))


_API_KINDS = ("input_million_usd", "output_million_usd", "cached_million_usd")


def _api_price(name: str) -> Table:
    found = get_api_price(name)
    rows = [*(_fact_row(f) for f in found.facts), {"fact": "as_of", "value": found.as_of}]
    return Table(kind="api-prices", title=found.name, rows=tuple(rows))


def _workloads() -> Table:
    rows = [{"name": w.name, "title": w.title, **w.settings()} for w in map(get_workload, workload_names())]
    return Table(kind="workloads", title="Published workloads", rows=tuple(rows))


def _workload(name: str) -> Table:
    found = get_workload(name)
    rows = [_fact_row(fact) for fact in found.facts.values()]
    return Table(kind="workloads", title=found.title, rows=tuple(rows), notes=(f"model: {found.model}",))


def _terms() -> Table:
    rows = [{"name": t.name, "definition": t.definition} for t in terms()]
    return Table(kind="terms", title="Words of the field", rows=tuple(rows))


def _term(name: str) -> Table:
    found = get_term(name)
    rows = [
        {"fact": "definition", "value": found.definition},
        {"fact": "spellings", "value": ", ".join(found.spellings)},
    ]
    if found.metric:
        rows.append({"fact": "in results", "value": found.metric})
    return Table(kind="terms", title=found.name, rows=tuple(rows))


def _traces() -> Table:
    rows = [{"name": name, **{key: _stats(name)[key] for key in _LISTED}} for name in trace_names()]
    return Table(kind="traces", title="Request traces, made from published statistics", rows=tuple(rows))


_LISTED = (
    "num_requests",
    "request_rate_per_s",
    "interarrival_cv_ratio",
    "input_mean_tokens",
    "input_p50_tokens",
    "input_p99_tokens",
    "output_mean_tokens",
    "output_p50_tokens",
    "output_p99_tokens",
)


def _stats(name: str) -> dict[str, Any]:
    found = stats(load_trace(name))
    return _shown(found, *(f.name for f in fields(found)))


def _trace(name: str) -> Table:
    trace = load_trace(name)
    rows = [{"fact": key, "value": value, "basis": "this trace"} for key, value in _stats(name).items()]
    rows += [_fact_row(f) for f in trace.facts]
    return Table(kind="traces", title=trace.name, rows=tuple(rows), notes=trace.notes)


def _fact_row(fact: Fact) -> dict[str, Any]:
    where = ", ".join(word for word in (fact.source.title if fact.source else "", fact.at) if word)
    return {"fact": fact.name, "value": fact.value, "basis": str(fact.basis), "source": where, "note": fact.note}


def readable(name: str, value: Any) -> str:
    """A value as a person reads it, its unit taken from the name's last words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return "" if value is None else str(value)
    words = name.split("_")
    if words[-1] in ("bytes", "flops", "w", "hz", "j", "usd") or (words[-1] == "s" and "per" not in words):
        return text(float(value), words[-1])
    if words[-2:] == ["per", "s"] and len(words) > 2 and words[-3] in ("bytes", "flops"):
        return text(float(value), words[-3]) + "/s"
    if words[-1] in UNIT_WORDS or isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}"


MANY = 1_000_000
"""Counts from here on are said in billions."""


def columns_of(table: Table) -> list[str]:
    """Keys of the rows, each once, in the order in which they come."""
    return list(dict.fromkeys(key for row in table.rows for key in row))


def cell(column: str, row: Mapping[str, Any]) -> str:
    """One formatted cell of a table; large counts are in billions, and a dash stands where there is no number."""
    value = row.get(column)
    if isinstance(value, float) and isnan(value):
        return "-"
    if column.startswith("num_") and isinstance(value, int) and value >= MANY:
        return f"{figures(value / 1e9)} B"
    return readable(str(row.get("fact", "")) if column == "value" else column, value)


def heading(column: str) -> str:
    """A column's name without the unit that its values carry."""
    for unit in ("_bytes_per_s", "_flops_per_s", "_bytes", "_w", "_s", "_usd"):
        if column.endswith(unit):
            return column.removesuffix(unit).replace("_", " ")
    return column.replace("_", " ")


_KINDS: dict[str, tuple[Callable[[], Table], Callable[[str], Table]]] = {
    "devices": (_devices, _device),
    "models": (_models, _model),
    "formats": (_formats, _format),
    "techniques": (_techniques, _technique),
    "engines": (_engines, _engine),
    "frameworks": (_frameworks, _framework),
    "recipes": (_recipes, _recipe),
    "prices": (_prices, _price),
    "api-prices": (_api_prices, _api_price),
    "places": (_places, _place),
    "traces": (_traces, _trace),
    "workloads": (_workloads, _workload),
    "terms": (_terms, _term),
}
