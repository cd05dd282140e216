"""Files of one's own: models, traces, devices and scenarios."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.files import write_atomically
from orrery.catalog.devices import template
from orrery.web.parameters import PageRoute
from orrery.web.render import page, wants_part
from orrery.web.uploads.apart import checked_apart
from orrery.web.uploads.refused import TAKEN, text_of
from orrery.web.uploads.stored_files import (
    MAX_BYTES,
    MAX_FILES,
    StoredFile,
    delete,
    keep,
    listed,
    name_for,
    refuse_full,
)

MENU = (60, "/uploads", "Uploads")

MAX_FIELD_BYTES = 4096
MAX_AT_ONCE = 1
"""Files that are looked at at the same time; others wait."""

_turn = asyncio.Semaphore(MAX_AT_ONCE)


async def uploads(request: Request) -> Response:
    """The list, and the form."""
    return _page(request)


async def upload(request: Request) -> Response:
    """Take a file, or say why not."""
    if request.headers.get("content-encoding", "identity").casefold() != "identity":
        raise HTTPException(415, "Packed requests are not taken; send the file as it is.")
    try:
        stored = await _taken(request)
    except OrreryError as error:
        return _page(request, status=422, problem=str(error))
    if wants_part(request):
        return _page(request, text=f"{stored.original} is kept as {stored.name}.")
    return RedirectResponse("/uploads", 303)


async def _taken(request: Request) -> StoredFile:
    folder: Path = request.app.state.place.uploads
    async with request.form(max_files=1, max_fields=4, max_part_size=MAX_FIELD_BYTES) as form:
        file, called = form.get("file"), form.get("name")
        if not isinstance(file, UploadFile) or not file.filename:
            raise ScenarioError("file: none was sent; choose one.")
        original, content = file.filename, await file.read()
    text = await asyncio.to_thread(text_of, original, content)
    refuse_full(folder, len(content))
    name = name_for(original, content, called if isinstance(called, str) else "")
    async with _turn:
        with TemporaryDirectory(prefix=".checking-", dir=folder) as apart:
            path = Path(apart) / name
            write_atomically(path, text)
            return keep(path, folder, original, await checked_apart(path, folder))


async def remove(request: Request) -> Response:
    """Delete a file."""
    async with request.form(max_files=0, max_fields=2, max_part_size=MAX_FIELD_BYTES) as form:
        name = str(form.get("name", ""))
    try:
        delete(name, request.app.state.place.uploads)
    except OrreryError as error:
        return _page(request, status=422, problem=str(error))
    return _page(request, text=f"{name} is deleted.") if wants_part(request) else RedirectResponse("/uploads", 303)


async def device_template(_: Request) -> Response:
    """A device file to start from."""
    headers = {"content-disposition": 'attachment; filename="my-device.toml"'}
    return PlainTextResponse(template(), headers=headers)


def _page(request: Request, status: int = 200, **text: Any) -> Response:
    files = listed(request.app.state.place.uploads)
    return page(
        request,
        "uploads.html",
        status=status,
        files=files,
        taken=TAKEN,
        most_files=MAX_FILES,
        most_bytes=MAX_BYTES,
        used_bytes=sum(stored.size_bytes for stored in files),
        **{"problem": "", "text": ""} | text,
    )


ROUTES = (
    PageRoute("/uploads", uploads, methods=["GET"]),
    PageRoute("/uploads", upload, methods=["POST"]),
    PageRoute("/uploads/delete", remove, methods=["POST"]),
    PageRoute("/uploads/device-template", device_template),
)
