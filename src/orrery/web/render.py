"""From a template to an answer; what every template knows."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from orrery import __version__
from orrery.base.units import figures, percent
from orrery.reports.words import BOUND_BY
from orrery.web.assets import styles
from orrery.web.assets import version as asset_version
from orrery.web.found_words import marked
from orrery.web.named import without_place

HERE = Path(__file__).parent


class Entry(NamedTuple):
    """A line of the menu."""

    order: int
    path: str
    name: str

    @property
    def is_first(self) -> bool:
        """Whether it stands in the menu itself; the others unfold from it."""
        return self.path in FIRST_PAGES


FIRST_PAGES = frozenset(
    {
        "/",
        "/plan",
        "/design",
        "/training",
        "/compare",
        "/what-if",
        "/fleet",
        "/sweep",
        "/runs",
        "/papers",
        "/uploads",
        "/docs",
    }
)
"""Pages that most people come for."""


@cache
def environment() -> Environment:
    """Templates, with everything escaped that is not marked as drawn by ourselves."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    cast("dict[str, Any]", found.globals).update(
        version=__version__,
        assets=asset_version(),
        styles=styles,
        svg=Markup,
        limits=BOUND_BY,
        marked=marked,
        number=figures,
        percent=percent,
    )
    return found


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A whole page; with htmx (and no boosted link) only its ``part`` block, where the template has one."""
    found = environment().get_template(template)
    known = {"path": request.url.path, "here": here(request), "menu": request.app.state.menu}
    known |= {"base": str(request.base_url), **context}
    if wants_part(request) and "part" in found.blocks:
        text = "".join(found.blocks["part"](found.new_context(known)))
    else:
        text = found.render(known)
    text = without_place(text, request.app.state.place.uploads)
    return HTMLResponse(text, status, headers={"cache-control": "no-store", "vary": "hx-request"})


def wants_part(request: Request) -> bool:
    """Whether htmx asks, for a piece of a page that is open."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"


def here(request: Request) -> str:
    """The page's own address, as it can be shared: without a host."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")
