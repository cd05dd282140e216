"""A reader's own digest: what they want of it, as it stands in an address or a form."""

from dataclasses import dataclass
from urllib.parse import urlencode

from orrery.evidence.digest.subscription import MAX_CHOSEN, SubscriptionFilter, check_selection, checked_frequency
from orrery.web.address import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Values of the form, checked or not."""

    address: str
    layers: tuple[str, ...]
    techniques: tuple[str, ...]
    searches: tuple[str, ...]
    frequency: str

    def selection(self) -> SubscriptionFilter:
        """The same, checked."""
        found = SubscriptionFilter(
            layers=self.layers,
            techniques=self.techniques,
            searches=self.searches,
            frequency=checked_frequency(self.frequency),
        )
        check_selection(found)
        return found


def written(query: Query) -> Written:
    """From the parameters of an address or a form."""
    techniques = tuple(name for value in query.getlist("technique") for name in value.replace(",", " ").split())
    searches = tuple(line.strip() for value in query.getlist("search") for line in value.splitlines() if line.strip())
    return Written(
        address=query.get("address", "").strip()[:300],
        techniques=techniques[: MAX_CHOSEN + 1],
        layers=tuple(dict.fromkeys(name for name in query.getlist("layer") if name)),
        searches=searches[: MAX_CHOSEN + 1],
        frequency=query.get("by", "week"),
    )


def query_of(selection: SubscriptionFilter | Written) -> str:
    """The parameters that say the same."""
    lists = (("layer", selection.layers), ("technique", selection.techniques), ("search", selection.searches))
    return urlencode([("by", selection.frequency), *((name, one) for name, chosen in lists for one in chosen)])
