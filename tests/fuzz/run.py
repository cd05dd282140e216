"""Fuzz one reader for some time: ``python tests/fuzz/run.py READER --seconds 600``.

Guided by coverage where Atheris is installed (``pip install atheris``), else by answers. The corpus is a folder, which
grows and serves the next run; an input that breaks the reader is written beside it, named on standard error.
"""

import argparse
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

HERE = Path(__file__).parent
COVERED = (
    "orrery.base",
    "orrery.calibrate.runs",
    "orrery.catalog",
    "orrery.emulator",
    "orrery.evidence.feed",
    "orrery.evidence.paper_file",
    "orrery.evidence.tables",
    "orrery.models",
    "orrery.reports.source",
    "orrery.scenario",
    "orrery.web.uploads",
    "tomli",
    "feedparser",
    "json",
    "csv",
)
"""Whose branches count."""

MAX_MIB = 3000
ROUND = 2000
"""Tries between two looks at the clock, without Atheris."""


def names() -> list[str]:
    """The readers that are fuzzed."""
    return sorted(found.name for found in iter_modules([str(HERE / "fuzzed")]))


def main() -> int:
    """Fuzz until the time is up or something breaks."""
    parser = argparse.ArgumentParser(description="Fuzz one reader of what users give.")
    parser.add_argument("reader", choices=names())
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--corpus", type=Path, default=HERE / "corpus", help="folder of folders, one a reader")
    requested = parser.parse_args()
    sys.path.insert(0, str(HERE))
    corpus = requested.corpus / requested.reader
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if find_spec("atheris"):
            guided_by_coverage(requested.reader, requested.seconds, corpus, Path(folder))
        else:
            guided_by_answers(requested.reader, requested.seconds, corpus, Path(folder))
    return 0


def guided_by_coverage(name: str, seconds: int, corpus: Path, folder: Path) -> None:
    """By libFuzzer, which ends this process itself."""
    import atheris

    with atheris.instrument_imports(include=list(COVERED)):
        reader = import_module(f"fuzzed.{name}")
    from mutants import MAX_BYTES, tried

    seed(reader, corpus)
    for data in reader.SEEDS:  # what is imported on first use takes no input's time
        (folder / reader.NAME).write_bytes(data)
        with suppress(*reader.REFUSALS):
            reader.read(folder / reader.NAME)
    words = corpus.parent / f"{name}.dict"
    words.write_text("".join(f'"{spelled(word)}"\n' for word in reader.WORDS if len(word) < 64))
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds}",
            f"-rss_limit_mb={MAX_MIB}",
            "-timeout=20",
            f"-max_len={MAX_BYTES}",
            f"-artifact_prefix={corpus.parent}/{name}-",
            f"-dict={words}",
            "-print_final_stats=1",
            str(corpus),
        ],
        lambda data: tried(reader, data, folder) and None,
    )
    atheris.Fuzz()


def spelled(word: bytes) -> str:
    """As libFuzzer's dictionaries have it."""
    return "".join(f"\\x{byte:02x}" for byte in word)


def guided_by_answers(name: str, seconds: int, corpus: Path, folder: Path) -> None:
    """By Hypothesis, a round after the other, each from what the last one found."""
    reader = import_module(f"fuzzed.{name}")
    from mutants import grown

    seed(reader, corpus)
    end_s, number = time.monotonic() + seconds, time.time_ns()
    while time.monotonic() < end_s:
        number += 1
        known = [path.read_bytes() for path in sorted(corpus.iterdir())]
        for i, data in enumerate(grown(reader, folder, known, ROUND, number)):
            (corpus / f"{number}-{i}").write_bytes(data)
    print(f"{name}: {len(list(corpus.iterdir())):,} inputs in {corpus}", file=sys.stderr)


def seed(reader: ModuleType, corpus: Path) -> None:
    """The reader's own examples first."""
    for i, data in enumerate(reader.SEEDS):
        (corpus / f"seed-{i}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
