"""Files that users give, read whole within bounds: what a file unpacks to is limited like what it holds.

A gzipped file of a megabyte can unpack to gigabytes, so the bytes are counted while they are unpacked, not after.
"""

import gzip
import io
import zlib
from pathlib import Path

from orrery.base.errors import OrreryError, ScenarioError

MAX_BYTES = 700_000_000
"""The most that one file may hold, unpacked: ShareGPT as published has 673 MB, a trace of ten million requests 300."""

PIECE_BYTES = 1 << 20

GZIP_MAGIC = b"\x1f\x8b"


def read_user_bytes(
    path: Path, what: str = "file", max_bytes: int = 0, error: type[OrreryError] = ScenarioError
) -> bytes:
    """The bytes of a file, unpacked where it is gzipped; ``error`` says why it cannot be read.

    ``what`` names the kind of file that is expected ("trace", "table"); ``max_bytes`` 0: ``MAX_BYTES``.
    """
    most = max_bytes or MAX_BYTES
    try:
        with path.open("rb") as file:
            raw = _bounded(file, path, most, error)
        if raw[:2] == GZIP_MAGIC:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = _bounded(packed, path, most, error)
    except OrreryError:
        raise
    except FileNotFoundError:
        raise error(f"There is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise error(f"{path}: is a folder; give a {what}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as damage:
        raise error(f"{path}: is a damaged gzip file ({damage}); pack it again, or give it unpacked.") from None
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"{str(path)!r}: cannot be read: {reason}; give a {what}.") from None
    return raw


def read_user_text(path: Path, what: str = "file", max_bytes: int = 0, error: type[OrreryError] = ScenarioError) -> str:
    """The text of a file (UTF-8, with or without a mark), unpacked where it is gzipped."""
    raw = read_user_bytes(path, what, max_bytes, error)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as damage:
        raise error(
            f"{path}: is no UTF-8 text (byte {damage.start:,}); give a {what} as text, or as gzipped text."
        ) from None


def user_path(text: str | Path) -> Path:
    """The path that somebody writes; ``~`` is their home where the system knows one.

    ScenarioError for a name that no file can have: too long, or with a NUL.
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # of nobody whom this system knows
        path = Path(text)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path  # whoever opens it says what is wrong
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{str(text)[:80]!r}: is no name that a file can have ({why}); give another.") from None
    return path


def is_user_file(path: Path) -> bool:
    """Whether a file of that name is there; a name that no file can have (too long, with a NUL) is not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_user_folder(path: Path) -> bool:
    """The same of a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _bounded(file: io.BufferedReader | gzip.GzipFile, path: Path, max_bytes: int, error: type[OrreryError]) -> bytes:
    """All of it, piece by piece; refused as soon as it is too much."""
    pieces: list[bytes] = []
    left = max_bytes
    while piece := file.read(min(left + 1, PIECE_BYTES)):
        left -= len(piece)
        if left < 0:
            raise error(f"{path}: holds more than {max_bytes:,} bytes unpacked; split it, or give a part of it.")
        pieces.append(piece)
    return b"".join(pieces)
