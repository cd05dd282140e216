"""``orrery papers``: what the field has published, what it says for you, and what is new."""

import click

from orrery.cli.lazy import LazyGroup

COMMANDS = {
    "list": "Papers by layer, device, technique, year, metric, kind or fit.",
    "search": "Find papers by what they are about, in your own words.",
    "show": "One paper: what it does, gains and costs, where it helps and hurts, and what came out here.",
    "trending": "New papers that many look at, or that matter to what you follow.",
    "fetch": "Get new papers from arXiv and daily lists; nothing else goes to the network.",
    "add": "Add papers by id, from a saved feed, or from a page saved as text.",
    "mark": "Mark papers as read or good, and say what you follow.",
    "lists": "Your own lists of papers: make, fill, hand out as a feed, BibTeX or JSON.",
    "digest": "What is new since last time, the most useful to you first.",
    "subscribe": "Who gets the digest by mail, of what, and how often.",
    "serve": "Pages where others subscribe, confirm and leave, and a feed of what is new.",
}
"""Name -> the line in the list of commands; each lives in ``orrery.cli.papers_<name>``."""


class Papers(LazyGroup):
    """Modules of this folder that begin with ``papers_``."""

    lines, module = COMMANDS, "orrery.cli.papers_"


EXAMPLES = """\b
Examples:
  orrery papers search "long prompts stall the decodes that are running"
  orrery papers show sarathi-serve
  orrery papers list --layer moe --year 2024.. --json"""


@click.command("papers", cls=Papers, epilog=EXAMPLES)
def command() -> None:
    """Papers on AI compute: find them, read what they claim and what comes out here, and hear of new ones."""
