"""Pages of the site whose answers are computed as it is written: a fleet, a what-if and a kernel for stated inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.scenario.jobs import DAY
from orrery.web.command_pages import fleet, kernel, what_if
from orrery.web.command_pages.command_page import CommandPage
from orrery.web.work.questions import answered

TECHNIQUES = "fp8-weights fp8-kv-cache token-split nano-batches prefix-caching"
"""Techniques of the page of what-if: formats, overlap of the network, and a cache of prefixes."""

ASKED: tuple[tuple[CommandPage, Mapping[str, Any]], ...] = (
    (what_if.PAGE, {**what_if.START, "technique": TECHNIQUES}),
    (fleet.PAGE, DAY),
    (kernel.PAGE, kernel.START),
)
"""Pages, each with its settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A page: its question, and the context that its template needs."""

    page: CommandPage
    context: Mapping[str, Any]


def computed() -> Iterator[Computed]:
    """Each question with its inputs by their labels, its command, its answer and the defaults that it took."""
    for page, settings in ASKED:
        plain = {**answered(page.name, settings), "inputs": settings}
        fields = (*page.first(settings), *page.folded(settings))
        context = {
            "lead": page.lead,
            "inputs": tuple((field.label, field.value) for field in fields if field.value),
            "command": page.command(settings),
            "sections": page.sections(plain),
            "notes": plain.get("notes", ()),
        }
        yield Computed(page=page, context=context)
