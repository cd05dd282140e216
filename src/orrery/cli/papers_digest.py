"""``orrery papers digest``: what is new since last time, to read here or to send."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import day, with_certificates, with_library

if TYPE_CHECKING:
    from orrery.evidence.digest.issue import DigestIssue
    from orrery.evidence.digest.send import Sent
    from orrery.evidence.understanding.meaning import Deployment

EXAMPLES = """\b
Examples:
  orrery papers digest
  orrery papers digest --by month --layer serving --search 'kv cache' --format html --out digest.html
  orrery papers digest --format atom --out new-papers.atom
  ORRERY_SMTP_PASSWORD=… orrery papers digest --send --smtp smtp://me@mail.example.org --from me@example.org
Run the last one from cron every day: each subscriber gets one letter a period, and never one twice."""


@click.command("digest", epilog=EXAMPLES)
@click.option(
    "--by", default="week", type=click.Choice(["day", "week", "month"]), show_default=True, help="How far back."
)
@click.option("--date", "until", type=day, metavar="DATE", help="The last day; default: today.")
@click.option("--layer", "layers", multiple=True, metavar="NAME", help="Only papers of this layer; repeat for more.")
@click.option("--technique", "techniques", multiple=True, metavar="NAME", help="Or like this technique of ours.")
@click.option("--search", "searches", multiple=True, metavar="WORDS", help="Or with all of these words.")
@click.option("--limit", default=15, type=click.IntRange(1, 200), metavar="N", show_default=True, help="How many.")
@click.option(
    "--format",
    "form",
    default="text",
    type=click.Choice(["text", "html", "atom"]),
    show_default=True,
    help="How it is written.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it there.")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your deployment: what a paper's technique would change in it.",
)
@click.option("--send", "is_sent", is_flag=True, help="Send it to all whose subscription is due.")
@click.option("--smtp", default="", metavar="URL", help="smtp://user@host:587 (STARTTLS) or smtps://user@host (TLS).")
@click.option("--from", "sender", default="", metavar="ADDRESS", help="Who writes.")
@click.option("--site", default="", metavar="URL", help="Where orrery papers serve is reached, for links to leave.")
@with_certificates
@with_library
@as_json
def command(
    by: str,
    until: date | None,
    layers: tuple[str, ...],
    techniques: tuple[str, ...],
    searches: tuple[str, ...],
    limit: int,
    form: str,
    out: Path | None,
    scenario_file: Path | None,
    is_sent: bool,
    smtp: str,
    sender: str,
    site: str,
    ca: Path | None,
    library: Path | None,
    is_json: bool,
) -> int:
    """New papers, the most useful first: in the terminal, as a page, as a feed, or sent to subscribers."""
    from orrery.cli.own_library import open_library
    from orrery.evidence.digest.issue import compose
    from orrery.evidence.digest.subscription import SubscriptionFilter, check_selection, checked_frequency

    if not is_sent and (smtp or sender or site or ca):
        raise click.UsageError("--smtp, --from, --site and --ca are for --send.")
    deployment = _deployment(scenario_file)
    if is_sent:
        if not smtp or not sender:
            raise click.UsageError("--send needs --smtp URL and --from ADDRESS.")
        if layers or techniques or searches or out:
            raise click.UsageError("--send writes to subscribers what each asked for; leave the choices and --out out.")
        return _send(library, until or date.today(), smtp, sender, site, ca, deployment, is_json)
    selection = SubscriptionFilter(
        layers=layers, techniques=techniques, searches=searches, frequency=checked_frequency(by)
    )
    check_selection(selection)
    with open_library(library) as store:
        issue = compose(store, until or date.today(), selection, deployment=deployment, most=limit)
    _show(issue, form, out, is_json)
    return 0


def _deployment(file: Path | None) -> "Deployment | None":
    from orrery.evidence.understanding.meaning import Deployment
    from orrery.scenario.file import load_scenario

    return Deployment(load_scenario(file)) if file else None


def _show(issue: "DigestIssue", form: str, out: Path | None, is_json: bool) -> None:
    """On standard output or into a file; the object of ``--json`` has the papers instead of the page."""
    from orrery.base.files import write_atomically
    from orrery.cli.output import print_json
    from orrery.evidence.digest.render import as_atom, as_html, as_text

    text = {"text": as_text, "html": as_html, "atom": as_atom}[form](issue)
    if out:
        write_atomically(out, text)
    if is_json:
        print_json(issue_json(issue))
    elif not out:
        print(text, end="")


def issue_json(issue: "DigestIssue") -> dict[str, object]:
    """The papers of an issue, why each is in it, and what it could mean."""
    from dataclasses import asdict

    from orrery.evidence.feed.entry import entry_json

    papers = [
        {
            **entry_json(item.trend.entry, item.trend.understood, item.trend.library_key),
            "score": item.trend.score,
            "because": item.because,
            "meaning": [asdict(m) for m in item.meanings],
            "claims_here": [asdict(e) for e in item.effects],
        }
        for item in issue.items
    ]
    since, until = issue.since.isoformat(), issue.until.isoformat()
    return {"title": issue.title, "since": since, "until": until, "papers": papers, "num_more": issue.num_more}


def _send(
    library: Path | None,
    today: date,
    smtp: str,
    sender: str,
    site: str,
    ca: Path | None,
    deployment: "Deployment | None",
    is_json: bool,
) -> int:
    """Letters to all that are due; 1 where the server refused one, or may or may not have it."""
    import sys
    from dataclasses import asdict

    from orrery.cli.output import print_json
    from orrery.cli.own_library import open_library
    from orrery.evidence.digest.email_message import Sender
    from orrery.evidence.digest.post import Server, connected
    from orrery.evidence.digest.send import send_due, unsure

    writer, server = Sender(address=sender, site=site), Server.of(smtp, ca)
    with open_library(library) as store, connected(server) as connection:
        sent = list(send_due(store, today, writer, connection, deployment=deployment))
        doubtful = unsure(store)
    if is_json:
        print_json({"letters": [asdict(s) for s in sent], "unsure": [list(pair) for pair in doubtful]})
    else:
        for one in sent:
            print(_line(one))
        num_sent = sum(s.outcome == "sent" for s in sent)
        print(f"{num_sent} letter{'' if num_sent == 1 else 's'} sent.")
    for address, period in doubtful:
        print(f"orrery: the letter of {period} to {address} may have arrived; it is not sent again.", file=sys.stderr)
    return 1 if any(s.outcome in ("refused", "unsure") for s in sent) else 0


def _line(sent: "Sent") -> str:
    text = f": {sent.text}" if sent.outcome in ("refused", "unsure") else ""
    papers = f"{sent.num_papers} paper{'' if sent.num_papers == 1 else 's'}"
    return f"{sent.address}: {sent.outcome}, {papers} of {sent.period}{text}"
