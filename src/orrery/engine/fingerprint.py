"""Compiled loops that span several files, kept on disk: an edit in any of the files compiles the loop anew.

numba finds a kept function by its qualified name, and only looks at its own file to see whether it is stale. So a loop
that calls functions of other files carries a digest of all their sources in its name.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any


def stamped(function: Callable[..., Any], *paths: str) -> Callable[..., Any]:
    """``function``, its qualified name ending in a digest of the sources at ``paths``."""
    digest = sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    function.__qualname__ = f"{function.__name__}_{digest.hexdigest()[:12]}"
    return function
