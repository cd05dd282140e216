"""Evidence of an answer: its facts with their sources, and the errors of such answers on measured runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.base.sources import Basis, Fact
from orrery.catalog.devices import get_device
from orrery.evidence.accuracy import read_tables
from orrery.planner.money import Tariff, tariff_of
from orrery.reports.report import Table
from orrery.reports.words import format_value
from orrery.scenario.ask import Answer
from orrery.scenario.reason import Reason
from orrery.scenario.why import paths, why

Row = tuple[str, ...]

ORDER = (Basis.ASSUMED, Basis.DERIVED, Basis.MEASURED, Basis.STATED)
"""Order of kinds of evidence, the least certain first."""


def facts_of(answer: Answer) -> tuple[Fact, ...]:
    """Every fact behind the numbers of an estimate, each once, under whose it is."""
    d = answer.question.deployment
    device = d.cluster.device
    owners = ((device.facts, device.name), (d.engine.facts, d.engine.name), (prices(answer.tariff), "price"))
    of = {id(f): owner for facts, owner in owners for f in facts.values()}
    found = (f for path in paths(answer) for f in _leaves(why(answer, path)))
    return once(owned(f, of.get(id(f), "")) for f in found)


def prices(tariff: Tariff) -> dict[str, Fact]:
    """The facts of a price, by name."""
    return {f.name: f for f in tariff.facts}


def priced(device: str) -> tuple[Fact, ...]:
    """The facts of a device's price."""
    return once(owned(f, "price") for f in tariff_of(get_device(device), None, None).facts)


def owned(fact: Fact, owner: str) -> Fact:
    """The fact under whose it is: ``h100-sxm: power_limit_w``."""
    return replace(fact, name=f"{owner}: {fact.name}") if owner else fact


def once(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Each fact once, what is least sure first, then by name."""
    found = {(f.name, str(f.value), f.at): f for f in facts}
    return tuple(sorted(found.values(), key=lambda f: (ORDER.index(f.basis), f.name)))


def _leaves(reason: Reason) -> Iterator[Fact]:
    yield from reason.facts
    for part in reason.parts:
        yield from _leaves(part)


def accuracy_of(groups: Iterable[str], metrics: Iterable[str]) -> Table | None:
    """Errors on measured runs of some groups (modes of serving, or a framework), and how often intervals held."""
    groups_used, known = list(dict.fromkeys(groups)), tuple(metrics)
    rows = [row for name, table in read_tables().items() for row in _rows(name, table, groups_used, known)]
    if not rows:
        return None
    return Table(
        title="How close such answers were to measured runs that had no part in any fit",
        num_words=3,
        columns=("measured runs", "kind", "figure", "runs", "median error", "within the 80 % interval"),
        rows=tuple(rows),
        summary="An 80 % interval is right when about 80 % of the runs lie within it.",
    )


def _rows(name: str, table: Mapping[str, Any], groups: Sequence[str], metrics: Sequence[str]) -> Iterator[Row]:
    for metric in metrics:
        scores: Mapping[str, Mapping[str, float]] = table.get(metric) or {}
        for group, score in scores.items():
            if group in groups and "covered_80" in score:
                runs, words = name.partition(".")[0].replace("_", " "), METRIC_WORDS.get(metric, metric)
                error, within = format_value(score["median"], "frac"), format_value(score["covered_80"], "frac")
                yield runs, group, words, f"{score['rows']:,}", error, within


METRIC_WORDS = {
    "ttft_s": "time to first token",
    "tpot_s": "time per output token",
    "output_tokens_per_s": "output tokens/s",
    "latency_s": "end-to-end latency",
    "step": "step time",
    "peak_memory_bytes": "peak memory",
}

ONLINE = ("closed", "open")
"""Kinds of measured runs in which requests come and go."""

SERVING = ("ttft_s", "tpot_s", "output_tokens_per_s", "latency_s")
TRAINING = ("step", "peak_memory_bytes")
