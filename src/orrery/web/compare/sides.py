"""The two designs of an address: settings with ``a.`` and ``b.`` before their names, and those of both without."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orrery.base.errors import OrreryError
from orrery.base.units import si
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.schema import read_scenario
from orrery.web.address import Query, query_of, settings_of
from orrery.web.named import grounded, without_place
from orrery.web.place import Place

EXAMPLE = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "tp": "4",
    "weights": "fp8",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
}
OTHER = {"device": "h200-sxm"}
"""Default comparison: a design, and a change in the other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """One design: its settings, and its answer, or why there is none."""

    letter: str
    settings: dict[str, Any]
    answer: Answer | None = None
    why: str = ""  # infeasible, with numbers
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """Query of the design's own page."""
        return query_of(self.settings)

    def prefixed(self, letter: str = "") -> str:
        """Query of a comparison in which this design is the one of that letter."""
        return query_of(self.settings, f"{letter or self.letter.lower()}.")


def settings_of_both(query: Query) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of A and of B. One alone is compared with itself, to be changed from there."""
    both = settings_of(query)
    a, b = (settings_of(query, prefix) for prefix in ("a.", "b."))
    if not (a or b or both):
        return dict(EXAMPLE), EXAMPLE | OTHER
    return both | (a or ({} if both else b)), both | (b or ({} if both else a))


def side_of(letter: str, settings: dict[str, Any], place: Place) -> Side:
    """A design, answered."""
    try:
        found = estimate(read_scenario(grounded(settings, place.uploads)))
    except OrreryError as error:
        return Side(letter=letter, settings=settings, error=without_place(str(error), place.uploads))
    notes = tuple(without_place(note, place.uploads) for note in found.notes)
    if isinstance(found, InfeasibleAnswer):
        return Side(letter=letter, settings=settings, why=str(found.infeasible), notes=notes)
    return Side(letter=letter, settings=settings, answer=found, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting of both designs; what was not given but taken stands as taken."""

    name: str
    a: str
    b: str
    is_taken: bool = False

    @property
    def differs(self) -> bool:
        """Whether the designs disagree on it."""
        return self.a != self.b


RESOLVED = ", resolved"
"""Ends the name of a setting as it was understood; where that is as it was written, it is left out."""


def differences(a: Side, b: Side) -> tuple[Difference, ...]:
    """Differing inputs, then differing defaults."""
    names = dict.fromkeys([*a.settings, *b.settings])
    inputs = [Difference(name=n, a=_describe(a.settings.get(n)), b=_describe(b.settings.get(n))) for n in names]
    taken_a, taken_b = dict(_taken(a)), dict(_taken(b))
    both = dict.fromkeys([*taken_a, *taken_b])
    taken = [Difference(name=n, a=taken_a.get(n, "-"), b=taken_b.get(n, "-"), is_taken=True) for n in both]
    stated = {(d.name, d.a, d.b) for d in inputs}
    return (*inputs, *(d for d in taken if (d.name.removesuffix(RESOLVED), d.a, d.b) not in stated))


def _describe(value: Any) -> str:
    return "-" if value is None else ", ".join(value) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _taken(side: Side) -> Iterator[tuple[str, str]]:
    """Assumptions of an answer that show in no setting."""
    if side.answer is None:
        return
    deployment, tariff = side.answer.question.deployment, side.answer.tariff
    yield "model, resolved", deployment.model.name
    yield "device, resolved", deployment.cluster.device.name
    yield "layout", str(deployment.layout)
    yield "devices (total)", str(deployment.layout.num_devices)
    formats = deployment.formats
    yield "weights, activations, cache", f"{formats.weights}, {formats.activations}, {formats.kv}"
    yield "engine, resolved", f"{deployment.engine.name} {deployment.engine.version}".rstrip()
    yield "price per device-hour", "unknown" if tariff.usd_per_hour is None else f"{si(tariff.usd_per_hour, 'usd')}/h"
