"""New papers fetched from the page or on a schedule: one fetch at a time, in a thread of its own, with its progress."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from threading import Event, Lock, Thread

from orrery.base.errors import OrreryError, ScenarioError
from orrery.evidence.feed.fetch import Fetched, fetch
from orrery.evidence.feed.polite import reader_for
from orrery.evidence.feed.question import Question
from orrery.evidence.feed.sources import about
from orrery.evidence.feed.store import Store
from orrery.evidence.find.known_papers import known_papers
from orrery.evidence.library import library_file
from orrery.web.papers.index import index_of
from orrery.web.place import Place

LISTS = {"arxiv": "arXiv", "daily": "Hugging Face daily papers"}
"""Lists of new papers that the page offers, and what they are called."""

SOURCES = {
    **LISTS,
    "scholar": "Semantic Scholar",
    "openreview": "OpenReview",
    "pages": "Hugging Face paper pages",
}
"""Lists, and sources that say more of known papers."""

MAX_ASKED = 60
"""Known papers that a source is asked about at once; the next fetch goes on with others."""

DAYS = 7
"""Age of the oldest papers that are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a fetch, or the result of the last one."""

    is_running: bool = False
    source: str = ""
    num_done: int = 0  # pages of the source's list
    num_pages: int = 0
    num_new: int = 0
    messages: tuple[str, ...] = ()  # a line for each source that was read, and for what went wrong


@dataclass(eq=False, kw_only=True)
class Fetching:
    """The fetches of a server."""

    place: Place
    every_s: float | None = None
    bases: Mapping[str, str] = field(default_factory=dict[str, str])  # addresses in place of the sources' own
    _progress: Progress = field(default_factory=Progress)
    _lock: Lock = field(default_factory=Lock)
    _stopped: Event = field(default_factory=Event)

    @property
    def progress(self) -> Progress:
        """The state of now."""
        return self._progress

    def start(self, sources: Sequence[str]) -> None:
        """Begin a fetch; while one runs, another is not begun. ScenarioError where a source is unknown."""
        if unknown := [name for name in sources if name not in SOURCES]:
            raise ScenarioError(f"source: got {unknown[0][:40]!r}; write {' or '.join(SOURCES)}.")
        if not sources:
            raise ScenarioError("source: none is chosen; choose one at least.")
        with self._lock:
            if self._progress.is_running:
                return
            self._progress = Progress(is_running=True, source=SOURCES[sources[0]])
        Thread(target=self._fetch, args=(tuple(sources),), name="orrery-fetch", daemon=True).start()

    def begin(self) -> None:
        """Fetch every few hours from now on, where that is wished."""
        if self.every_s is not None:
            Thread(target=self._repeat, args=(self.every_s,), name="orrery-fetch-timer", daemon=True).start()

    def end(self) -> None:
        """No fetch begins any more."""
        self._stopped.set()

    def wait(self, limit_s: float = 60.0) -> None:
        """Return when nothing is fetched any more."""
        until_s = time.monotonic() + limit_s
        while self._progress.is_running and time.monotonic() < until_s:
            time.sleep(0.01)

    def _repeat(self, interval_s: float) -> None:
        while not self._stopped.is_set():
            self.start(tuple(LISTS))
            self._stopped.wait(interval_s)

    def _fetch(self, sources: Sequence[str]) -> None:
        try:
            with Store(library_file(self.place.library)) as store:
                for name in sources:
                    self._progress = replace(self._progress, source=SOURCES[name], num_done=0, num_pages=0)
                    self._keep(SOURCES[name], self._one(store, name))
            index_of(self.place.library).fill()  # so that the next search is quick
        except OrreryError as error:
            self._say(str(error))
        finally:
            self._progress = replace(self._progress, is_running=False)

    def _one(self, store: Store, name: str) -> Fetched:
        base, today = self.bases.get(name, ""), date.today()
        since = today - timedelta(days=DAYS) if name == "arxiv" else None
        question = Question(source=name, since=since, base=base)
        if name not in LISTS:
            question = about(replace(question, most_papers=MAX_ASKED), store, known_papers(store), today)
        return fetch(store, reader_for(name, base, 0.0 if base else None), question, today, self._count)

    def _count(self, num_done: int, num_pages: int) -> None:
        self._progress = replace(self._progress, num_done=num_done, num_pages=num_pages)

    def _keep(self, title: str, found: Fetched) -> None:
        saved = found.saved
        self._progress = replace(self._progress, num_new=self._progress.num_new + saved.num_new)
        self._say(
            f"{title}: {saved.num_new} new, {saved.num_updated} updated, {saved.num_same} known already."
            if found.is_list
            else f"{title}: asked about {found.num_asked} known papers, and says more of {found.num_records}."
        )
        if not found.is_complete:
            why = found.skipped[-1].why if found.skipped else "it broke off."
            self._say(f"{title} was not read to its end: {why} The next fetch goes on from there.")

    def _say(self, message: str) -> None:
        self._progress = replace(self._progress, messages=(*self._progress.messages, message))
