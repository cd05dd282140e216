"""Refusals before any reader sees a file: by name, by size, by its first bytes, and by shape."""

from pathlib import PurePosixPath

from orrery.base.errors import ScenarioError

MAX_BYTES = {".json": 4_000_000, ".jsonl": 4_000_000, ".csv": 4_000_000, ".toml": 200_000}
"""By ending; the endings that are taken."""

MAX_LINES = 250_000

TAKEN = (
    ".json (a config.json, ShareGPT conversations, or results of a benchmark), .csv or .jsonl (a trace, sessions of "
    "agents, measured runs), .toml (a device or a scenario)"
)

PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"Rar!": "rar",
    b"7z\xbc\xaf": "7z",
    b"PAR1": "Parquet",
    b"LZIP": "lzip",
    b"\x1f\x9d": "compress",
}
"""First bytes of files whose size says nothing about what they unpack to."""


def ending_of(name: str) -> str:
    """The ending of a file's name, which says what it should be; ScenarioError where such files are not taken."""
    ending = PurePosixPath(bare(name)).suffix.casefold()
    if ending in (".yaml", ".yml"):
        raise ScenarioError(f"{bare(name)[:80]}: YAML is not read; write the same as TOML or JSON.")
    if ending not in MAX_BYTES:
        raise ScenarioError(f"{bare(name)[:80] or 'the file'}: ends in {ending[:20] or 'nothing'}; taken: {TAKEN}.")
    return ending


def bare(name: str) -> str:
    """A file's name without its folders, whichever system it comes from, on one line."""
    return " ".join(name.replace("\\", "/").replace("\0", " ").rsplit("/", 1)[-1].split())


def text_of(name: str, content: bytes) -> str:
    """The text of a file that may go on to its reader; ScenarioError says why not."""
    shown, ending = bare(name)[:80], ending_of(name)
    for magic, what in PACKED.items():
        if content.startswith(magic):
            raise ScenarioError(f"{shown}: is packed ({what}); unpack it and upload the text.")
    if not content.strip():
        raise ScenarioError(f"{shown}: is empty.")
    if len(content) > MAX_BYTES[ending]:
        raise ScenarioError(f"{shown}: {len(content):,} bytes are too many; {ending} may have {MAX_BYTES[ending]:,}.")
    if b"\0" in content:
        raise ScenarioError(f"{shown}: holds NUL bytes, so it is no text; save it as UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown}: is not UTF-8 text (byte {error.start:,}); save it as UTF-8.") from None
    if (lines := text.count("\n")) > MAX_LINES:
        raise ScenarioError(f"{shown}: {lines:,} lines are too many; at most {MAX_LINES:,} are taken.")
    return text
