"""Cards of the pages of commands: the first result, as a verdict and a few rows."""

from collections.abc import Mapping
from typing import Any

from orrery.web.cards.card import ShareCard
from orrery.web.command_pages.command_page import CommandPage, Section

ABOUT = {
    "model": "{}",
    "device": "{}",
    "tp": "tp {}",
    "input_tokens": "{} in",
    "output_tokens": "{} out",
    "concurrency": "{} in flight",
    "rate": "{} requests/s",
    "trace": "{} traffic",
}
"""Settings that say what it is about, below the result."""

MAX_COLUMNS = 5


def command_card(kind: CommandPage, settings: Mapping[str, Any], plain: Mapping[str, Any]) -> ShareCard:
    """The page's question, its verdict, and the first rows of its first table."""
    sections = kind.sections(plain)
    first = sections[0] if sections else Section(title="")
    table = next((s.table for s in sections if s.table is not None), None)
    return ShareCard(
        kicker=kind.title,
        title=first.title if first.title != "Result" else named(settings) or kind.menu[1],
        text=first.verdict,
        columns=table.columns[:MAX_COLUMNS] if table else (),
        rows=tuple(row[:MAX_COLUMNS] for row in table.rows) if table else (),
        foot=("orrery", about(settings)),
    )


def about(settings: Mapping[str, Any]) -> str:
    """The deployment and its load in a line."""
    return ", ".join(words.format(settings[name]) for name, words in ABOUT.items() if settings.get(name))


def named(settings: Mapping[str, Any]) -> str:
    """The model and its devices; empty where the question has none."""
    model, device = settings.get("model"), settings.get("device")
    return f"{model} on {device}" if model and device else str(model or device or "")
