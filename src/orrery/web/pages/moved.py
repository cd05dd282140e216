"""Addresses that carry a command's name where its page has another: ``/estimate`` leads to ``/design``."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

ADDRESSES = {"/estimate": "/design", "/train": "/training", "/simulate": "/runs/new"}


def _to(address: str) -> Callable[[Request], Awaitable[Response]]:
    async def moved(request: Request) -> Response:
        return RedirectResponse(f"{address}?{request.url.query}" if request.url.query else address)

    return moved


ROUTES = tuple(Route(name, _to(address)) for name, address in ADDRESSES.items())
