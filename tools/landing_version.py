"""The version of the constants and mechanisms behind a prediction: a digest of their sources."""

import hashlib
from functools import cache
from pathlib import Path

import orrery

ROOT = Path(orrery.__file__).parent
LAYERS = ("hardware", "models", "kernels", "network", "numerics", "execution", "serving", "catalog")
"""Packages that a serving prediction is computed from."""

ENDINGS = (".py", ".toml")


@cache
def version() -> str:
    """Twelve letters that change with any source of a prediction."""
    digest = hashlib.sha256()
    for layer in LAYERS:
        for path in sorted(p for p in (ROOT / layer).rglob("*") if p.suffix in ENDINGS):
            digest.update(path.relative_to(ROOT).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
