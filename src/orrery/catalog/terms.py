"""Words of the field with their definitions, from ``facts/terms.toml``: for pages, the command line and the docs."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.errors import UnknownName

FILE = Path(__file__).parent / "facts" / "terms.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the field; ``metric`` is the name in docs/metrics.md of what it measures, empty where it is none."""

    key: str
    spellings: tuple[str, ...]
    definition: str
    metric: str = ""

    @property
    def name(self) -> str:
        """The usual spelling."""
        return self.spellings[0]


@cache
def terms() -> tuple[Term, ...]:
    """Every word, in the order of the file."""
    rows = tomllib.loads(FILE.read_text("utf-8"))
    return tuple(
        Term(key=key, spellings=tuple(r["spellings"]), definition=r["definition"], metric=r.get("more", ""))
        for key, r in rows.items()
    )


def get_term(name: str) -> Term:
    """The word with that key or spelling, in any case; UnknownName with the nearest where there is none."""
    key = name.casefold()
    for term in terms():
        if key in (term.key, *(s.casefold() for s in term.spellings)):
            return term
    raise UnknownName("term", name, tuple(t.name for t in terms()))
