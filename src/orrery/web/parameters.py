"""Parameters of addresses: each page states those that it reads, and all others are refused, here and nowhere else.

A word that is not known must not fall to a default in silence: who mistyped ``?y=usd`` would read another chart.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import QueryParams
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from orrery.base.errors import ScenarioError, nearest

MAX_LETTERS = 40
MAX_LISTED = 24
"""Words or names that a message spells out."""

FOREIGN = re.compile(r"utm_[a-z_]+|fbclid|gclid|mc_[a-z]+")
"""Names that other sites put behind the links that they show; they mean nothing here."""

NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The names that one page reads, by who checks what stands in them; blanks are as good as absent."""

    words: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])  # with all that they take
    numbers: frozenset[str] = frozenset()
    checked: frozenset[str] = frozenset()  # by the page, where it reads them
    texts: frozenset[str] = frozenset()  # that may hold anything
    settings: Collection[str] = ()  # of scenarios, checked where these are; dashes are as good as underscores
    prefixes: tuple[str, ...] = ("",)  # before settings

    def check(self, query: QueryParams) -> None:
        """Raise ScenarioError where a name, a word or a number is none that the page reads."""
        for name, value in query.multi_items():
            self._check_name(name)
            text = value.strip()
            if text and name in self.words:
                check_word(name, text, self.words[name])
            if text and name in self.numbers and not NUMBER.fullmatch(text):
                raise ScenarioError(f"{name}: got {text[:MAX_LETTERS]!r}; write a number.")

    @property
    def own(self) -> tuple[str, ...]:
        """Names beside the settings."""
        return (*self.words, *sorted(self.numbers | self.checked | self.texts))

    def _check_name(self, name: str) -> None:
        if name in self.own or self._is_setting(name) or FOREIGN.fullmatch(name):
            return
        near = nearest(name, [*self.own, *(prefix + one for prefix in self.prefixes for one in self.settings)])
        reads = f"it reads {_listed(self.own)}" if self.own else "it reads none"
        rest = " and the settings of its command" if self.settings and self.own else ""
        hint = f"write {' or '.join(near)}" if near else f"{reads}{rest}"
        raise ScenarioError(f"{name[:MAX_LETTERS]}: this page reads no parameter of that name; {hint}.")

    def _is_setting(self, name: str) -> bool:
        return any(
            name.startswith(prefix) and name.removeprefix(prefix).replace("-", "_") in self.settings
            for prefix in self.prefixes
        )


NONE = Parameters()


class PageRoute(Route):
    """A route whose address is checked before its page is asked."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        parameters: Parameters = NONE,
        *,
        methods: list[str] | None = None,
    ) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.parameters = parameters

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the address, or answer."""
        self.parameters.check(QueryParams(scope["query_string"]))
        await super().handle(scope, receive, send)


def check_word(name: str, text: str, known: Collection[str]) -> None:
    """Raise ScenarioError where a word is none of the known ones."""
    if text not in known:
        raise ScenarioError(f"{name}: got {text[:MAX_LETTERS]!r}; write {_words(text, known)}.")


def check_as(path: str, query: QueryParams, routes: Collection[Any]) -> None:
    """Check a query as the page at ``path`` would; nothing where there is no such page."""
    scope: Scope = {"type": "http", "method": "GET", "path": path, "path_params": {}, "root_path": ""}
    for route in routes:
        if isinstance(route, PageRoute) and route.matches(scope)[0] is Match.FULL:
            route.parameters.check(query)
            return


def _words(text: str, known: Collection[str]) -> str:
    """The known words; of many those that look like the one that was written."""
    return _listed((nearest(text, known) or known) if len(known) > MAX_LISTED else known)


def _listed(words: Collection[str]) -> str:
    shown = [word for word in words if word]
    rest = f" and {len(shown) - MAX_LISTED} more" if len(shown) > MAX_LISTED else ""
    return ", ".join(shown[:MAX_LISTED]) + rest
