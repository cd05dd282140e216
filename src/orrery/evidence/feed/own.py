"""Paper files of the reader's own: checked like those that come with orrery, and kept in the reader's folder."""

import re
from pathlib import Path

from orrery.base.errors import FactError
from orrery.base.files import write_atomically
from orrery.base.user_file import read_user_bytes
from orrery.evidence.library import own_papers_folder
from orrery.evidence.paper_file import Paper, paper_keys, read_paper

MAX_BYTES = 4_000_000

_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def add_paper(path: Path, library: Path | None, *, replaces: bool = False) -> tuple[Paper, Path]:
    """Copy a paper file into the reader's folder, whole or not at all, and say where it lies."""
    content = read_user_bytes(path, "paper file (TOML)", MAX_BYTES, FactError)
    try:
        paper = read_paper(path)
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        if isinstance(error, FactError):
            raise
        raise FactError(f"{path.name}: is no paper file; a line of it is of the wrong kind ({error}).") from None
    if not _KEY.fullmatch(paper.key):
        raise FactError(f"{path.name}: its name is the paper's key; rename it to small letters, digits and hyphens.")
    if paper.key in paper_keys():
        raise FactError(f"{path.name}: orrery comes with a paper {paper.key!r} already; rename the file.")
    target = own_papers_folder(library) / f"{paper.key}.toml"
    if target.exists() and not replaces and target.read_bytes() != content:
        raise FactError(f"{target}: is there already, and differs; write --replace to put {path} in its place.")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)
    return paper, target
