"""Diffusion pipelines by name: the fields of their published configs, one file a model in ``facts/diffusion``."""

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from orrery.base.arguments import typed
from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.base.user_file import is_user_file
from orrery.models.diffusion import DiffusionModel
from orrery.models.diffusion_file import diffusion_model

FOLDER = Path(__file__).parent / "facts" / "diffusion"
ENDINGS = ("diffusers", "1024pxdiffusers", "1024px", "1024ms")
"""Endings of checkpoint names that people leave out."""


@cache
def _files() -> dict[str, Path]:
    return {p.stem.replace("--", "/", 1): p for p in sorted(FOLDER.glob("*.toml"), key=lambda p: p.name.casefold())}


def diffusion_names() -> tuple[str, ...]:
    """Every catalogued pipeline, as model hubs name it."""
    return tuple(_files())


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.casefold())


@cache
def _spellings() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _files():
        short = _squeezed(name.rsplit("/", 1)[-1])
        for spelled in (_squeezed(name), short, *(short.removesuffix(end) for end in ENDINGS)):
            found.setdefault(spelled, name)
    return found


def find_diffusion(name: str) -> str | None:
    """The catalogued name behind a spelling; None where it is none of a pipeline."""
    return _spellings().get(_squeezed(name))


@typed
def get_diffusion(name_or_path: str | Path) -> DiffusionModel:
    """The pipeline of that name in any spelling, or the one that a TOML file describes in the catalogue's way."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml"):
        return _read(Path(text), Path(text).stem)
    found = find_diffusion(text)
    if found is None:
        raise UnknownName("model", text, diffusion_names())
    return _load(found)


@lru_cache(maxsize=64)
def _load(name: str) -> DiffusionModel:
    return _read(_files()[name], name)


def _read(path: Path, name: str) -> DiffusionModel:
    if not is_user_file(path):
        raise UnknownName("model", str(path), diffusion_names())
    raw = read_toml(path)
    return diffusion_model(name, raw.get("published"), path.name, _addresses(raw.get("sources")))


def _addresses(sources: Any) -> tuple[str, ...]:
    """Where a file says that its values are from."""
    if not isinstance(sources, dict):
        return ()
    tables = cast("dict[str, Any]", sources).values()
    return tuple(str(cast("dict[str, Any]", t).get("url", "")) for t in tables if isinstance(t, dict))
