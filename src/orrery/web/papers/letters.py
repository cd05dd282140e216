"""A reader's own digest: what they want of it, as it stands in an address or a form."""

from dataclasses import dataclass
from urllib.parse import urlencode

from orrery.evidence.digest.subscription import MOST_CHOSEN, Wanted, check_wanted, checked_frequency
from orrery.web.address import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What stands in the form, checked or not."""

    address: str
    layers: tuple[str, ...]
    techniques: tuple[str, ...]
    searches: tuple[str, ...]
    frequency: str

    def wanted(self) -> Wanted:
        """The same, checked."""
        found = Wanted(
            layers=self.layers, techniques=self.techniques, searches=self.searches,
            frequency=checked_frequency(self.frequency),
        )  # fmt: skip
        check_wanted(found)
        return found


def written(query: Query) -> Written:
    """From the parameters of an address or a form."""
    techniques = tuple(name for value in query.getlist("technique") for name in value.replace(",", " ").split())
    searches = tuple(line.strip() for value in query.getlist("search") for line in value.splitlines() if line.strip())
    return Written(
        address=query.get("address", "").strip()[:300], techniques=techniques[: MOST_CHOSEN + 1],
        layers=tuple(dict.fromkeys(name for name in query.getlist("layer") if name)),
        searches=searches[: MOST_CHOSEN + 1], frequency=query.get("by", "week"),
    )  # fmt: skip


def query_of(wanted: Wanted | Written) -> str:
    """The parameters that say the same."""
    lists = (("layer", wanted.layers), ("technique", wanted.techniques), ("search", wanted.searches))
    return urlencode([("by", wanted.frequency), *((name, one) for name, chosen in lists for one in chosen)])
