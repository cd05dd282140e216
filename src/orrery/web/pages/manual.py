"""The documentation."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from orrery.web.manual.pages import manual_page, picture
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.render import page

MENU = (70, "/docs", "Docs")

PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".webp": "image/webp"}
"""Media types by the ending of a file; older systems do not know the last."""


async def manual(request: Request) -> Response:
    """One page, or a picture of one."""
    name = str(request.path_params.get("name", "index"))
    if found := picture(name):
        return FileResponse(found, media_type=PICTURES[found.suffix])
    if name.endswith(".md"):
        return RedirectResponse(f"/docs/{name.removesuffix('.md')}", 301)
    text = await asyncio.to_thread(manual_page, name, request.query_params.get("part", ""))
    if text is None:
        part = request.query_params.get("part", "")
        what = f"part {part[:80]!r} of the page" if part else "page"
        raise HTTPException(404, f"There is no {what} {name[:80]!r} in the docs; /docs lists them.")
    return page(request, "manual.html", title=text.title, content=text.content)


PARAMETERS = Parameters(checked=frozenset({"part"}))

ROUTES = (PageRoute("/docs", manual, PARAMETERS), PageRoute("/docs/{name:path}", manual, PARAMETERS))
