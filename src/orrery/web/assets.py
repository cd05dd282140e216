"""Scripts, styles and pictures of the pages: kept by browsers until they change; the field's words as a script."""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from orrery.catalog.terms import terms

BUNDLES: Mapping[str, Sequence[str]] = {
    "base.js": ("page.js", "terms.js", "define.js"),
    "landing.js": ("best-points.js", "best-chart.js", "best.js"),
}
"""Scripts that travel as one: every page has the first, the landing page the second too."""

STATIC = Path(__file__).parent / "static"
TERMS = "terms.js"
YEAR_S = 365 * 24 * 3600
LEVEL = 9
"""gzip level of what is compressed once."""


@cache
def terms_script() -> str:
    """``const TERMS = {spelling: definition};`` with spellings in small letters, for page.js."""
    found = {spelling.casefold(): term.definition for term in terms() for spelling in term.spellings}
    return f"const TERMS = {json.dumps(found, ensure_ascii=False)};\n"


@cache
def script(name: str) -> bytes:
    """The parts of a bundle, one after the other; they are plain scripts that share one scope."""
    parts = (terms_script() if part == TERMS else (STATIC / part).read_text(encoding="utf-8") for part in BUNDLES[name])
    return "".join(parts).encode()


@cache
def compressed(name: str) -> bytes:
    """A bundle as it travels."""
    return gzip.compress(script(name), LEVEL, mtime=0)


@cache
def styles(*names: str) -> Markup:
    """Style sheets to stand in a page, which then waits for none."""
    return Markup("\n".join((STATIC / name).read_text(encoding="utf-8") for name in names))


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
        if path in BUNDLES and scope["method"] in ("GET", "HEAD"):
            response = built(script(path), compressed(path), scope, "text/javascript")
        else:
            response = await super().get_response(path, scope)
        has_version = scope["query_string"].decode("latin-1") == version()
        response.headers["cache-control"] = f"public, max-age={YEAR_S}, immutable" if has_version else "no-cache"
        return response


def built(plain: bytes, packed: bytes, scope: Scope, media_type: str) -> Response:
    """Bytes that were made and compressed before, as the browser takes them."""
    if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
        return Response(plain, media_type=media_type, headers={"vary": "accept-encoding"})
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(packed, media_type=media_type, headers=headers)
