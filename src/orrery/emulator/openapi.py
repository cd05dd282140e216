"""The interface as OpenAPI describes it, of the paths that a server has."""

import json
from collections.abc import Container
from importlib.resources import files


def described(paths: Container[str]) -> bytes:
    """The document, with those of its paths that are served."""
    document = json.loads((files("orrery.emulator") / "openapi.json").read_bytes())
    document["paths"] = {path: methods for path, methods in document["paths"].items() if path in paths}
    return json.dumps(document, ensure_ascii=False).encode()
