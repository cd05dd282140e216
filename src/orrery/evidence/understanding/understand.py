"""A paper understood: its layer, the techniques it resembles and what it claims; kept with the paper in the library."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256

from orrery.evidence.feed.entry import Classification, Entry, NumericClaim
from orrery.evidence.feed.store import Store
from orrery.evidence.paper_file import paper_keys
from orrery.evidence.understanding.claims import claims_of
from orrery.evidence.understanding.layer import layer_of
from orrery.evidence.understanding.techniques import techniques_of
from orrery.evidence.understanding.weights import shipped

RULES = "4"
"""Changes when a rule changes, so that papers are understood anew."""

BATCH_PAPERS = 100
"""Papers saved at once: an interruption loses no more."""


def understand(entry: Entry) -> Classification:
    """Classification of a paper by the rules."""
    layer, sure = layer_of(entry.title, entry.abstract)
    return Classification(
        layer=layer,
        layer_confidence_frac=round(sure, 3),
        techniques=techniques_of(entry.title, entry.abstract),
        claims=claims_of(entry.abstract),
    )


def understood(
    store: Store, entries: Sequence[Entry], on_progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Classification]:
    """Every paper understood, by id: as it was kept, or now where its words, the rules or the library have changed."""
    rows = store.rows("select entry, made_by, body from understood")
    retained = {row["entry"]: (row["made_by"], row["body"]) for row in rows}
    rules = house()
    found: dict[str, Classification] = {}
    fresh: list[tuple[str, str, str]] = []
    for i, entry in enumerate(entries):
        on_progress(i, len(entries))
        mark = sha256("|".join((rules, entry.title, entry.abstract)).encode()).hexdigest()[:24]
        made_by, body = retained.get(entry.id, ("", ""))
        if made_by == mark:
            found[entry.id] = _read(body)
        else:
            found[entry.id] = understand(entry)
            fresh.append((entry.id, mark, json.dumps(asdict(found[entry.id]), ensure_ascii=False)))
            if len(fresh) == BATCH_PAPERS:
                _keep(store, fresh)
    _keep(store, fresh)
    return found


def house() -> str:
    """Fingerprint of everything the classification depends on besides the paper's words."""
    return "|".join((RULES, shipped().mark, ",".join(paper_keys())))


def _keep(store: Store, fresh: list[tuple[str, str, str]]) -> None:
    """Save the classifications in the library, and take the papers off the list."""
    if fresh:
        store.many("insert or replace into understood values (?, ?, ?)", fresh)
        fresh.clear()


def _read(body: str) -> Classification:
    raw = json.loads(body)
    return Classification(
        layer=raw["layer"],
        layer_confidence_frac=raw["layer_confidence_frac"],
        techniques=tuple((name, sure) for name, sure in raw["techniques"]),
        claims=tuple(NumericClaim(**claim) for claim in raw["claims"]),
    )
