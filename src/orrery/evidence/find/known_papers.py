"""Papers that sources can be asked about: those of the reader's library, and those that come with orrery."""

from datetime import date

from orrery.evidence.feed.record import Known
from orrery.evidence.feed.saved_entries import all_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id
from orrery.evidence.find.library_cache import library


def known_papers(store: Store, since: date | None = None) -> tuple[Known, ...]:
    """Each once, the latest first; nothing older, where a day is given."""
    dated = [(e.published or date.min, Known(id=e.id, title=e.title)) for e in all_entries(store)]
    for d in library():
        day = date.fromisoformat(d.published) if d.published else date(d.year or 1, 1, 1)
        dated.append((day, Known(id=d.arxiv or title_id(d.title), title=d.title)))
    latest = sorted(dated, key=lambda pair: pair[0], reverse=True)
    return tuple({p.id: p for day, p in latest if since is None or day >= since}.values())
