"""A digest of compiled rooms' sources: numba's cache sees edits of a function's own file only.

A loop that calls functions of other files is compiled inside a closure over this digest, which numba counts into the
cache's key: an edit in any of the files compiles the loop anew.
"""

from hashlib import sha256
from pathlib import Path
from types import ModuleType


def fingerprint(*modules: ModuleType) -> str:
    """One digest of the source text of all ``modules``."""
    digest = sha256()
    for module in modules:
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()
