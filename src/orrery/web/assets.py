"""Scripts, styles and pictures of the pages: kept by browsers until they change; the field's words as a script."""

import hashlib
import json
from functools import cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from orrery.catalog.terms import terms

STATIC = Path(__file__).parent / "static"
TERMS = "terms.js"
YEAR_S = 365 * 24 * 3600


@cache
def terms_script() -> str:
    """``const TERMS = {spelling: definition};`` with spellings in small letters, for page.js."""
    found = {spelling.casefold(): term.definition for term in terms() for spelling in term.spellings}
    return f"const TERMS = {json.dumps(found, ensure_ascii=False)};\n"


@cache
def version() -> str:
    """Ten letters that change with any of the files; pages add them to the addresses."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    parts = (terms_script().encode(), *(path.read_bytes() for path in files))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:10]


class Assets(StaticFiles):
    """The folder; what is asked for by its version may be kept for a year, anything else is asked for again."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file's answer, with how long it may be kept."""
        if path == TERMS and scope["method"] in ("GET", "HEAD"):
            response = Response(terms_script(), media_type="text/javascript")
        else:
            response = await super().get_response(path, scope)
        has_version = scope["query_string"].decode("latin-1") == version()
        response.headers["cache-control"] = f"public, max-age={YEAR_S}, immutable" if has_version else "no-cache"
        return response
