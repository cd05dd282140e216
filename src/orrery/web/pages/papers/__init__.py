"""Papers: the library, what is new in it, each paper's entry, how claims fare, and the reader's digest."""

from orrery.evidence.digest.subscription import FREQUENCIES
from orrery.evidence.understanding.trending import DAYS
from orrery.web.pages.papers.digest import change, digest, feed
from orrery.web.pages.papers.entry import beside, entry
from orrery.web.pages.papers.fetching import fetch, progress
from orrery.web.pages.papers.fresh import day, trending
from orrery.web.pages.papers.library import home, library, suggest
from orrery.web.pages.papers.lists import ALL_FORMS, FORMS, lists, one_list
from orrery.web.pages.papers.lists import change as change_lists
from orrery.web.pages.papers.marking import follow, mark
from orrery.web.pages.papers.score import scorecard
from orrery.web.papers.listing import FILTERS
from orrery.web.papers.meaning import DEPLOYED
from orrery.web.parameters import PageRoute, Parameters

MENU = (50, "/papers", "Papers")

AMONG = {"among": ("new", "library")}
LISTED = Parameters(
    words={**AMONG, "format": ("json", "csv")},
    numbers=frozenset({"page"}),
    checked=frozenset(FILTERS),
    texts=frozenset({"q"}),
)
SCORED = Parameters(
    words={**AMONG, "format": ("json", "svg", "csv")}, numbers=frozenset({"page"}), checked=frozenset(FILTERS)
)
CHOSEN = Parameters(
    words={"by": FREQUENCIES, "as": ("text",), "done": ("kept", "ended")},
    checked=frozenset({"layer", "technique"}),
    texts=frozenset({"search", "address"}),
)
RANKED = Parameters(words={"by": tuple(DAYS)}, checked=frozenset({"date", "layer"}))
ENTRY = Parameters(
    words={"format": ("json", "bibtex"), "job": ("serve", "train"), "short": ("1",)},
    checked=frozenset({"scenario"}),
    settings=DEPLOYED,
)

ROUTES = (
    PageRoute("/papers", home, LISTED),
    PageRoute("/papers/library", library, LISTED),
    PageRoute("/papers/search", library, LISTED),
    PageRoute("/papers/suggest", suggest, Parameters(words=AMONG, texts=frozenset({"q"}))),
    PageRoute("/papers/day", day),
    PageRoute("/papers/day/{day}", day),
    PageRoute("/papers/trending", trending, RANKED),
    PageRoute("/papers/scorecard", scorecard, SCORED),
    PageRoute("/papers/subscribe", digest, CHOSEN, methods=["GET"]),
    PageRoute("/papers/subscribe", change, methods=["POST"]),
    PageRoute("/papers/feed.atom", feed, CHOSEN),
    PageRoute("/papers/fetch", progress, methods=["GET"]),
    PageRoute("/papers/fetch", fetch, methods=["POST"]),
    PageRoute("/papers/mark", mark, methods=["POST"]),
    PageRoute("/papers/follow", follow, methods=["POST"]),
    PageRoute(
        "/papers/lists", lists, Parameters(words={"form": ALL_FORMS}, checked=frozenset({"key"})), methods=["GET"]
    ),
    PageRoute("/papers/lists", change_lists, methods=["POST"]),
    PageRoute("/papers/lists/{name}", one_list, Parameters(words={"form": FORMS})),
    PageRoute("/papers/beside/{key:path}", beside, ENTRY),
    PageRoute("/papers/{key:path}", entry, ENTRY),
)
"""In this order: a paper's key may be anything else."""
