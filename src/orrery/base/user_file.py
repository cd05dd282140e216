"""Files that users give, read whole within bounds: what a file unpacks to is limited like what it holds.

A gzipped file of a megabyte can unpack to gigabytes, so the bytes are counted while they are unpacked, not after.
"""

import gzip
import io
import zlib
from pathlib import Path

from orrery.base.errors import ScenarioError

MAX_BYTES = 512_000_000
"""The most that one file may hold, unpacked: a trace of ten million requests has some 300 MB."""

GZIP_MAGIC = b"\x1f\x8b"


def read_user_bytes(path: Path, what: str = "file", max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a file, unpacked where it is gzipped; ScenarioError says why it cannot be read.

    ``what`` names the kind of file that is expected ("trace", "table"), for the error.
    """
    try:
        with path.open("rb") as file:
            raw = _bounded(file, path, max_bytes)
        if raw[:2] == GZIP_MAGIC:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = _bounded(packed, path, max_bytes)
    except ScenarioError:
        raise
    except FileNotFoundError:
        raise ScenarioError(f"There is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: is a folder; give a {what}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ScenarioError(f"{path}: is a damaged gzip file ({error}); pack it again, or give it unpacked.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{path}: cannot be read: {reason}; give a {what}.") from None
    return raw


def read_user_text(path: Path, what: str = "file", max_bytes: int = MAX_BYTES) -> str:
    """The text of a file (UTF-8, with or without a mark), unpacked where it is gzipped."""
    raw = read_user_bytes(path, what, max_bytes)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: is no UTF-8 text (byte {error.start:,}); give a {what} as text, or as gzipped text."
        ) from None


def _bounded(file: io.BufferedReader | gzip.GzipFile, path: Path, max_bytes: int) -> bytes:
    raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ScenarioError(f"{path}: holds more than {max_bytes:,} bytes unpacked; split it, or give a part of it.")
    return raw
