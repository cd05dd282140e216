"""``orrery papers subscribe``: who gets the digest, of what, and how often."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_library

if TYPE_CHECKING:
    from orrery.evidence.digest.subscription import Subscription

EXAMPLES = """\b
Examples:
  orrery papers subscribe me@example.org --layer serving --search 'speculative decoding' --by day
  orrery papers subscribe                    everyone, and what they asked for
  orrery papers subscribe me@example.org --end
Emails are sent by: orrery papers digest --send. Others subscribe themselves at: orrery papers serve."""


@click.command("subscribe", epilog=EXAMPLES)
@click.argument("address", required=False)
@click.option("--layer", "layers", multiple=True, metavar="NAME", help="Papers of this layer; repeat for more.")
@click.option("--technique", "techniques", multiple=True, metavar="NAME", help="Papers like this technique of ours.")
@click.option("--search", "searches", multiple=True, metavar="WORDS", help="Papers with all of these words.")
@click.option("--by", default="week", type=click.Choice(["day", "week", "month"]), show_default=True, help="How often.")
@click.option("--end", "is_end", is_flag=True, help="No more emails to this address.")
@with_library
@as_json
def command(
    address: str | None,
    layers: tuple[str, ...],
    techniques: tuple[str, ...],
    searches: tuple[str, ...],
    by: str,
    is_end: bool,
    library: Path | None,
    is_json: bool,
) -> None:
    """Add an address of your own, change what it gets, end it; or list all. What is not chosen is not filtered."""
    from orrery.cli.output import print_json
    from orrery.cli.own_library import open_library
    from orrery.evidence.digest.subscription import SubscriptionFilter, Subscriptions, checked_frequency
    from orrery.evidence.feed.extra import FeedError

    if address is None and (layers or techniques or searches or is_end):
        raise click.UsageError("Write the address first.")
    selection = SubscriptionFilter(
        layers=layers, techniques=techniques, searches=searches, frequency=checked_frequency(by)
    )
    with open_library(library) as store:
        subscriptions = Subscriptions(store)
        if address and is_end:
            known = subscriptions.find(address)
            if known is None:
                raise FeedError(f"{address} has no subscription; orrery papers subscribe lists all.")
            subscriptions.change(known.id, "ended")
        elif address:
            subscriptions.ask(address, selection, "active")
        listed = subscriptions.all()
    if is_json:
        print_json({"subscriptions": [_json(s) for s in listed]})
        return
    for subscription in listed:
        print(_line(subscription))
    if not listed:
        print("No subscriptions yet.")


def _json(subscription: "Subscription") -> dict[str, object]:
    from dataclasses import asdict

    return {"address": subscription.address, "state": subscription.state, **asdict(subscription.selection)}


def _line(subscription: "Subscription") -> str:
    return f"{subscription.address}: {subscription.state}, {subscription.selection}"
