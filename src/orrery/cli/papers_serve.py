"""``orrery papers serve``: pages where others subscribe, confirm and leave, and a feed."""

from pathlib import Path

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_certificates, with_library

EXAMPLES = """\b
Examples:
  orrery papers serve --smtp smtp://localhost:25 --from papers@example.org --site https://papers.example.org
It listens on this machine alone; put a web server with TLS before it, which passes /subscribe, /confirm,
/unsubscribe and /feed.atom on."""


@click.command("serve", epilog=EXAMPLES)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; other than this machine: with care."
)
@click.option("--port", default=8025, type=click.IntRange(0, 65535), show_default=True, help="0: any free one.")
@click.option("--site", required=True, metavar="URL", help="Where the pages are reached from outside.")
@click.option(
    "--smtp", required=True, metavar="URL", help="smtp://user@host:587 (STARTTLS) or smtps://user@host (TLS)."
)
@click.option("--from", "sender", required=True, metavar="ADDRESS", help="Who writes.")
@with_certificates
@with_library
@as_json
def command(
    host: str, port: int, site: str, smtp: str, sender: str, ca: Path | None, library: Path | None, is_json: bool
) -> None:
    """Let others subscribe: they confirm by letter before anything else is sent, and leave with one click."""
    import sys
    from email.message import EmailMessage

    from orrery.base.errors import ScenarioError
    from orrery.base.listening import address_of
    from orrery.cli.output import print_json
    from orrery.cli.own_library import open_library
    from orrery.evidence.digest.email_message import Sender
    from orrery.evidence.digest.post import Server, connected
    from orrery.evidence.digest.server import serve
    from orrery.evidence.digest.subscription_handler import SubscriptionHandler

    server = Server.of(smtp, ca)

    def mail(letter: EmailMessage) -> None:
        with connected(server) as connection:
            handed, text = connection.hand_over(letter)
        if handed == "refused":
            raise ScenarioError(f"smtp: refused: {text}.")

    with open_library(library) as store:
        path = store.path
    with serve(SubscriptionHandler(path, Sender(address=sender, site=site), mail), host, port) as desk:
        address = f"{address_of(desk.socket)}/subscribe"
        if is_json:
            print_json({"address": address})
            sys.stdout.flush()
        print(f"Subscribe at {address}; Ctrl-C stops.", file=sys.stderr, flush=True)
        desk.serve_forever()
