"""Papers by their date: a page for each year, month and day that has papers."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from orrery.evidence.feed.store import Store
from orrery.web.papers.fresh import Dates, dates
from orrery.web.papers.index import Index
from orrery.web.papers.period import Period, of_document

FIRST = "dates.html"


def by_date(index: Index) -> Iterator[Dates]:
    """The latest papers, then every date that has some; no reader's library has a part in it."""
    periods = {period for document in index.documents() if (period := of_document(document))}
    every = sorted({period.as_(kind) for period in periods for kind in ("year", "month", "day")})
    with TemporaryDirectory() as folder, Store(Path(folder) / "library.sqlite") as store:
        yield dates(store, index, None)
        for period in every:
            yield dates(store, index, period, most=len(index.documents()))


def date_path(period: Period) -> str:
    """Where the page of a date lies."""
    return f"dates/{period.text}.html"
