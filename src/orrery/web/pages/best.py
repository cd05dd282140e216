"""The landing page: every accelerator at its best layout for a model, and the jobs by name."""

import asyncio
import gzip
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.models import resolve
from orrery.web.address import Query
from orrery.web.assets import LEVEL, built
from orrery.web.landing import shipped, view
from orrery.web.landing.card import card
from orrery.web.landing.choices import BITS, DEVICES, ENGINES, MODELS, SIZES, TRAFFIC
from orrery.web.landing.shown import shown
from orrery.web.named import grounded
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.question.jobs import jobs
from orrery.web.render import Entry, environment, page

MENU = (-10, "/", "Best")
NUM_BUILT = 32
"""Finished pages that are kept."""


async def best(request: Request) -> Response:
    """The page; its chart is drawn from data that lies in it, or is fetched device by device."""
    problem, choice = "", view.Choice()
    try:
        choice = choice_of(request.query_params, request)
    except OrreryError as error:
        problem = str(error)
    is_usd, base = request.query_params.get("y") == "usd", str(request.base_url)
    if not problem and shipped.is_shipped(choice.model, choice.engine, choice.traffic):
        plain, packed = await asyncio.to_thread(_built, choice, is_usd, base, request.app.state.menu)
        answer = built(plain, packed, request.scope, "text/html")
        answer.headers["cache-control"] = "no-store"
        return answer
    context = await asyncio.to_thread(_context, choice, is_usd, base)
    return page(request, "best.html", status=422 if problem else 200, problem=problem, **context)


@lru_cache(maxsize=NUM_BUILT)
def _built(choice: view.Choice, is_usd: bool, base: str, menu: tuple[Entry, ...]) -> tuple[bytes, bytes]:
    """A page whose chart was computed ahead depends on nothing else: its bytes, plain and compressed."""
    template = environment().get_template("best.html")
    plain = template.render(path="/", menu=menu, problem="", **_context(choice, is_usd, base)).encode()
    return plain, gzip.compress(plain, LEVEL, mtime=0)


def _context(choice: view.Choice, is_usd: bool, base: str) -> dict[str, Any]:
    return {
        **shown(choice, is_usd),
        "models": view.all_models(),
        "jobs": jobs(),
        "card_address": f"{base}best/card.png?{urlencode({'model': choice.model, 'engine': choice.engine})}",
        "address_of_model": _address,
        "is_static": False,
    }


def _address(model: str) -> str:
    return f"/?model={model}"


async def points(request: Request) -> Response:
    """The rows of one accelerator, computed now."""
    choice = choice_of(request.query_params, request)
    device = request.query_params.get("device", "")
    if not device:
        raise ScenarioError(f"device: none is named; write {', '.join(d.key for d in DEVICES)}.")
    settings = {
        **grounded({"model": choice.model}, request.app.state.place.uploads),
        "device": device,
        "engine": choice.engine,
        "input_tokens": choice.lengths[0],
        "output_tokens": choice.lengths[1],
    }
    return JSONResponse(await request.app.state.work.answer("points", settings, request))


async def picture(request: Request) -> Response:
    """The card that stands for a link to the page."""
    choice = choice_of(request.query_params, request)
    return Response(await asyncio.to_thread(card, choice), media_type="image/png")


async def search(request: Request) -> Response:
    """To the page of the model that was typed."""
    return RedirectResponse(f"/?model={key_of(request.query_params.get('name', '').strip(), request)}", 303)


def choice_of(query: Query, request: Request) -> view.Choice:
    """Parameters of the address; ScenarioError where one is not known."""
    found: dict[str, Any] = {}
    if name := query.get("model", "").strip():
        found["model"] = key_of(name, request)
    found |= {name: value for name in ("engine", "traffic", "bits") if (value := query.get(name, "").strip())}
    if unknown := [v for v in query.get("without", "").split(",") if v and v not in view.vendors()]:
        raise ScenarioError(f"without: got {unknown[0][:40]!r}; write {', '.join(view.vendors())}.")
    for name in ("ttft", "tpot"):
        if value := query.get(name, ""):
            found[f"{name}_s"] = _positive(name, value) / view.MS
    return view.Choice(**found)


def key_of(name: str, request: Request) -> str:
    """The key of a popular model where the name is one of its spellings, else the name as it is; it must be known."""
    title = next((m.key for m in MODELS if name.casefold() in (m.title.casefold(), m.key)), None)
    if title:
        return title
    grounded({"model": name}, request.app.state.place.uploads)
    if name.startswith("upload:"):
        return name
    known = resolve(name)
    return next((m.key for m in MODELS if resolve(m.key) == known), name)


def _positive(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise ScenarioError(f"{name}: got {value[:20]!r}; write milliseconds above 0, such as {name}=50.")
    return found


CHOICES = {"engine": tuple(ENGINES), "traffic": tuple(TRAFFIC), "bits": BITS}
KEYS = tuple(d.key for d in DEVICES)
LIMITED = frozenset({"model", "ttft", "tpot"})
SHOWN = Parameters(
    words={**CHOICES, "y": ("rate", "usd"), "devices": SIZES, "device": KEYS},
    numbers=frozenset({"point"}),
    checked=LIMITED | {"without"},
)

ROUTES = (
    PageRoute("/", best, SHOWN),
    PageRoute("/best/points", points, Parameters(words={**CHOICES, "device": KEYS}, checked=LIMITED)),
    PageRoute("/best/card.png", picture, Parameters(words=CHOICES, checked=LIMITED)),
    PageRoute("/best/model", search, Parameters(checked=frozenset({"name"}))),
)
