"""All papers that have a file, as documents: those that come with orrery, and the reader's own.

Reading the files takes longer than a search, so the documents are kept made.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_dir

from orrery.base.files import write_atomically
from orrery.evidence.find.document import Document, Number
from orrery.evidence.library import own_papers_folder, paper_texts

MAKERS = (
    *(Path(__file__).with_name(name) for name in ("made.py", "document.py")),
    Path(__file__).parents[1] / "amounts.py",
)
"""Modules that make a document: a change of these makes all documents anew."""

KEPT = Path(user_cache_dir("orrery", appauthor=False)) / "papers.json"


def library(cache_path: Path = KEPT) -> tuple[Document, ...]:
    """Every paper that has a file; from ``kept`` where no file has changed since that was written."""
    files = _files()
    made_of = _stamp((*files, *MAKERS))
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(cache_path.read_text(encoding="utf-8"))
        if found["stamp"] == made_of:
            return tuple(_document(row) for row in found["documents"])
    documents = tuple(_made(path) for path in files)
    with suppress(OSError):  # a home that cannot be written to is only slower
        cache_path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(cache_path, json.dumps({"stamp": made_of, "documents": [asdict(d) for d in documents]}))
    return documents


def stamp() -> str:
    """Changes whenever the library does."""
    return _stamp((*_files(), *MAKERS))


def _files() -> list[Path]:
    return sorted((*paper_texts(), *own_papers_folder().glob("*.toml")))


def _made(path: Path) -> Document:
    from orrery.evidence.find.made import document_of_paper
    from orrery.evidence.paper_file import read_paper

    return document_of_paper(read_paper(path))


def _document(row: dict[str, object]) -> Document:
    row["numbers"] = [Number(**{**n, "devices": tuple(n["devices"])}) for n in row["numbers"]]  # pyright: ignore
    return Document(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})  # pyright: ignore


def _stamp(files: Iterable[Path]) -> str:
    """Changes when a file is added, removed or written to."""
    stamps = [f"{path} {(stat := path.stat()).st_mtime_ns} {stat.st_size}" for path in files]
    return sha256("\n".join(stamps).encode()).hexdigest()
