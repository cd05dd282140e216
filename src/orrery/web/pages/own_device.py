"""The device file of the page My own GPU: downloaded, or kept among the uploads."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from orrery.base.files import write_atomically
from orrery.web.address import query_of
from orrery.web.command_pages.device import FILE, OWN, PAGE, file_of, settings
from orrery.web.named import UPLOADED
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.uploads.apart import checked_apart
from orrery.web.uploads.stored_files import keep, name_for, refuse_full

MAX_FIELDS = 60
MAX_FIELD_BYTES = 4096
FOR_A_PLAN = ("model", "weights", "kv", "engine", "input_tokens", "output_tokens")


async def download(request: Request) -> Response:
    """The file that the address describes."""
    text = await _text(request.query_params)
    return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{FILE}"'})


async def keep_file(request: Request) -> Response:
    """Keep the file, and open the form of a plan with it."""
    async with request.form(max_files=0, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as form:
        query = QueryParams([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
    text, folder = await _text(query), request.app.state.place.uploads
    title = settings(query).get("title", "my-device")
    name = name_for(FILE, text.encode(), title)
    refuse_full(folder, len(text.encode()))
    with TemporaryDirectory(prefix=".checking-", dir=folder) as apart:
        path = Path(apart) / name
        write_atomically(path, text)
        keep(path, folder, f"{title}.toml", await checked_apart(path, folder))
    plan = {key: value for key, value in settings(query).items() if key in FOR_A_PLAN}
    return RedirectResponse(f"/plan?{query_of({**plan, 'device': UPLOADED + name, 'max_devices': 8})}", 303)


async def _text(query: QueryParams) -> str:
    return await asyncio.to_thread(file_of, settings(query))


ROUTES = (
    PageRoute(f"/{PAGE.name}/file", download, Parameters(settings=frozenset(OWN))),
    PageRoute(f"/{PAGE.name}/keep", keep_file, methods=["POST"]),
)
