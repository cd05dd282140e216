"""``orrery formats list`` and ``show``: every number format, and one of them with all that it does."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import device_names, get_device
from orrery.execution.formats import activations_for, compute_format
from orrery.numerics.element import Element
from orrery.numerics.format import Format
from orrery.numerics.names import EXAMPLES, get_element, named_elements
from orrery.numerics.parse import parse_format
from orrery.numerics.registry import find_format, known_formats
from orrery.scenario.answer import to_json
from orrery.scenario.format_facts import (
    ElementFacts,
    edges_of,
    error_curve,
    facts_of,
    plain_facts,
    scales_of,
    table_of,
)

BINADES, CURVE_POINTS = 8, 64
"""Binades and points of the curve of relative errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the list; a mixture has no element, and only bits."""

    group: str  # "format", "element" or "spelling"
    name: str
    bits_per_element: float
    element: ElementFacts | None
    source: str

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        facts = asdict(self.element) | {"element": self.element.name} if self.element else {}
        own = {"group": self.group, "name": self.name, "bits_per_element": self.bits_per_element}
        return facts | own | {"source": self.source}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatList:
    """Every registered format, every element, and one spelling of each family."""

    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """``{"formats": […], "elements": […], "spellings": […]}``."""
        groups = {"formats": "format", "elements": "element", "spellings": "spelling"}
        return to_json({key: [r.to_json() for r in self.rows if r.group == group] for key, group in groups.items()})


def list_formats() -> FormatList:
    """List every format and element that has a name, and examples of what a name may look like."""
    rows = [
        Row(
            group="format",
            name=f.name,
            bits_per_element=f.bits_per_element,
            source=f.source,
            element=facts_of(f.element) if f.element else None,
        )
        for f in known_formats().values()
    ]
    rows += [_of_element("element", e) for e in named_elements().values()]
    rows += [_of_element("spelling", get_element(name)) for name in EXAMPLES]
    return FormatList(rows=tuple(rows))


def _of_element(group: str, element: Element) -> Row:
    facts = facts_of(element)
    return Row(group=group, name=element.name, bits_per_element=element.bits, element=facts, source=facts.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One format: what it holds, how it is scaled, what it does at its edges, and who multiplies it."""

    format: Format
    element: ElementFacts | None
    scales: tuple[str, ...]
    edges: dict[str, str]
    values: tuple[float, ...]  # by code
    curve: tuple[tuple[float, float], ...]
    native_on: dict[str, str]  # device -> the row of its peak table
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """One object; ``values`` by code, with ``null`` for codes that are no number (see ``nan_codes``)."""
        values = np.array(self.values)
        return to_json(
            {
                **plain_facts(self.format),
                "element": self.element,
                "scales": self.scales,
                "edges": self.edges,
                "values": self.values,
                "nan_codes": np.flatnonzero(np.isnan(values)),
                "infinity_codes": np.flatnonzero(np.isinf(values)),
                "native_on": self.native_on,
                "relative_error": [{"binades_below_largest": x, "error_frac": y} for x, y in self.curve],
                "notes": self.notes,
            }
        )


def show_format(name: str) -> Shown:
    """A format, a spelling or a bare element by name; a name that is both is the format, and a note says so."""
    plain = name.strip().casefold()
    format, notes = parse_format(plain), list[str]()
    element = format.element
    if plain in named_elements() and find_format(plain) is not None and format.name != plain:
        notes.append(f"{plain!r} is taken as the format {format.name}; the element alone is {plain}/none")
    if format.name not in known_formats():
        notes.append("a spelling: no kernel in it is known, so that no rate of a device is either")
    if element is None:
        notes.append("a mixture of several block formats: only its mean bits are known, and nothing rounds to it")
        return Shown(
            format=format,
            element=None,
            scales=(),
            edges={},
            values=(),
            curve=(),
            native_on=_native_on(format),
            notes=tuple(notes),
        )
    return Shown(
        format=format,
        element=facts_of(element),
        scales=tuple(scales_of(format)),
        edges=edges_of(format, element),
        values=tuple(table_of(element)),
        curve=tuple(error_curve(element, BINADES, CURVE_POINTS)),
        native_on=_native_on(format),
        notes=tuple(notes),
    )


def _native_on(format: Format) -> dict[str, str]:
    """Devices that multiply it as it is stored, and in which row of their peak tables."""
    if format.name not in known_formats() or format.weight_only:
        return {}
    found: dict[str, str] = {}
    for device in map(get_device, device_names()):
        activations = activations_for(format.name, device)
        if compute_format(format.name, activations, device) != format.name:
            continue
        try:
            found[device.name] = device.peak_flops_per_s(format.rates)[0]
        except OutOfRange:
            continue
    return found
