"""Papers: the library, what is new in it, each paper's entry, how claims fare, and the reader's digest."""

from starlette.routing import Route

from orrery.web.pages.papers.digest import change, digest, feed
from orrery.web.pages.papers.entry import beside, entry
from orrery.web.pages.papers.fresh import day, trending
from orrery.web.pages.papers.library import home, library, suggest
from orrery.web.pages.papers.lists import change as change_lists
from orrery.web.pages.papers.lists import lists, one_list
from orrery.web.pages.papers.marking import follow, mark
from orrery.web.pages.papers.score import scorecard

MENU = (50, "/papers", "Papers")

ROUTES = (
    Route("/papers", home),
    Route("/papers/library", library),
    Route("/papers/search", library),
    Route("/papers/suggest", suggest),
    Route("/papers/day", day),
    Route("/papers/day/{day}", day),
    Route("/papers/trending", trending),
    Route("/papers/scorecard", scorecard),
    Route("/papers/subscribe", digest, methods=["GET"]),
    Route("/papers/subscribe", change, methods=["POST"]),
    Route("/papers/feed.atom", feed),
    Route("/papers/mark", mark, methods=["POST"]),
    Route("/papers/follow", follow, methods=["POST"]),
    Route("/papers/lists", lists, methods=["GET"]),
    Route("/papers/lists", change_lists, methods=["POST"]),
    Route("/papers/lists/{name}", one_list),
    Route("/papers/beside/{key:path}", beside),
    Route("/papers/{key:path}", entry),
)
"""In this order: a paper's key may be anything else."""
