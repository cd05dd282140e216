"""Do the tests see mistakes? Make small wrong changes, one at a time, and run the tests of the same folder.

    python tools/mutants/run.py --floors kernels network --count 60

draws that many changes of each floor by seed, besides those of planted.toml, and runs for each the tests that reach the
line, on a copy of the package: nothing here imports it. Compiled rooms stay compiled, but for one whose source was
changed, which runs as plain Python. A change that no test sees is listed; equivalent.toml names those that change no
answer, and why.
Ends with status 1 where fewer than 80 % of a floor's other changes are seen.
"""

import argparse
import compileall
import importlib
import json
import os
import py_compile
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401  # loaded once, before the processes that run tests are forked
import numpy as np  # noqa: F401
import pytest
from changes import Change, changes_of
from covering import PLUGINS, ROOT, WRAPS, Covering, lines_of, measure, measure_plain, results

FLOORS = (
    "numerics",
    "hardware",
    "models",
    "kernels",
    "network",
    "execution",
    "training",
    "serving",
    "reasoning",
    "fleet",
    "rl",
    "catalog",
    "planner",
    "scenario",
    "evidence",
)
HERE = Path(__file__).parent
MIN_FRAC = 0.8
MOST_LEFT_OUT_FRAC = 0.1
"""Of a floor's tests, those that fail as the code stands, always or now and then."""
SEED = 2026
OPTIONS = (
    "-q",
    *PLUGINS,
    "-W",
    "ignore:Module already imported:pytest.PytestAssertRewriteWarning",
    *WRAPS,
)
LONGEST_S = 1800.0
SLACK_S, SLACK_RATIO, WAIT_RATIO = 20.0, 4.0, 6.0
"""A run that computes this much longer than its tests took is a loop without end, which its user would see; on a busy
machine it may wait some times as long as it computes."""


FATES = ("killed", "survived", "equivalent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one change."""

    change: Change
    fate: str  # one of FATES
    num_tests: int
    seconds: float


class Tree:
    """A copy of the sources in which changes are made, with its bytecode checked by content.

    The extension of a compiled room holds the digests of its sources, so a change to one makes that room plain Python.
    """

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        ignored = shutil.ignore_patterns("__pycache__", "*.c")
        shutil.copytree(ROOT / "src", self.source, ignore=ignored)
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self.source, quiet=2, workers=1, invalidation_mode=checked)

    @contextmanager
    def plain(self, floor: str) -> Iterator[frozenset[str]]:
        """Run every compiled room that has a source on a floor as plain Python meanwhile; the sources of those rooms.

        Their lines are seen then.
        """
        away: list[Path] = []
        sources: set[str] = set()
        for path in self.source.rglob("*.so"):
            made_of = self._sources_of(path.parent.name)
            if any(made.startswith(f"{floor}/") for made in made_of):
                away.append(path)
                sources.update(made_of)
        for path in away:
            path.rename(path.with_suffix(".away"))
        try:
            yield frozenset(sources)
        finally:
            for path in away:
                path.with_suffix(".away").rename(path)

    def _sources_of(self, room: str) -> list[str]:
        """The files, from the folder of the package, that the extension of a room was compiled from."""
        description = f"import json; from orrery.{room} import _compiled as c; print(json.dumps([*c.SOURCES]))"
        environ = environment(self.source, self.source)
        found = subprocess.run(
            [sys.executable, "-c", description], env=environ, capture_output=True, text=True, check=False
        )
        return json.loads(found.stdout or "[]")  # of another Python's: that room is plain as it is

    def path(self, change: Change) -> Path:
        """The file that a change is in."""
        return self.source / "orrery" / change.path


def environment(source: Path, scratch: Path) -> dict[str, str]:
    """Variables under which tests run: the copy first, and nothing written beside the repository."""
    return os.environ | {
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # two thirds of the time of a short test
    }


def preload(source: Path, floor: str) -> None:
    """Load what a floor stands on, which no change of it touches, before the processes that run tests are forked."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    at = next(i for i, layer in enumerate(layers) if floor in layer.split(" | "))
    for room in reversed([room for layer in layers[at + 1 :] for room in layer.split(" | ")]):
        for path in sorted((source / "orrery" / room).rglob("*.py")):
            name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
            with suppress(ImportError):  # what needs a package that is not there
                importlib.import_module(name)


def drawn(floor: str, count: int, seed: int, under: tuple[str, ...] = ("",)) -> list[Change]:
    """Changes of a floor: those planted there, and others drawn; only of files whose path begins as ``under``."""
    folder = ROOT / "src" / "orrery"
    every: list[Change] = []
    for path in sorted((folder / floor).rglob("*.py")):
        if (name := str(path.relative_to(folder))).startswith(under):
            every += changes_of(name, path.read_text(encoding="utf-8"))
    picked = random.Random(f"{floor} {seed}").sample(every, min(count, len(every)))
    old = [change for change in planted(floor) if change.path.startswith(under)]
    return [*old, *sorted(picked, key=lambda change: (change.path, change.start))]


def planted(floor: str) -> Iterator[Change]:
    """Mistakes that tests once let through, made again. Raises where the code no longer has what they change."""
    for one in tomllib.loads((HERE / "planted.toml").read_text(encoding="utf-8"))["planted"]:
        if one["path"].split("/")[0] != floor:
            continue
        text = (ROOT / "src" / "orrery" / one["path"]).read_text(encoding="utf-8")
        start = text.find(one["old"])
        if start < 0 or text.count(one["old"]) > 1:
            raise SystemExit(
                f"planted.toml: {one['path']} has {one['old']!r} {text.count(one['old'])} times, not once."
            )
        line = text.count("\n", 0, start) + 1
        yield Change(
            path=one["path"],
            line=line,
            whole=text.splitlines()[line - 1],
            start=start,
            end=start + len(one["old"]),
            old=one["old"],
            new=one["new"],
        )


def fate(change: Change, tree: Tree, covering: Covering, scratch: Path) -> Outcome:
    """Make the change, run the tests that reach it, and take it back."""
    path = tree.path(change)
    text = path.read_text(encoding="utf-8")
    started = time.perf_counter()
    num_lines = change.old.count("\n")
    lines = {n for line in range(change.line, change.line + num_lines + 1) for n in lines_of(text, line)}
    tests = covering.tests_of(change.path, lines)
    if not tests:
        return Outcome(change=change, fate="survived", num_tests=0, seconds=0.0)
    limit_s = SLACK_S + SLACK_RATIO * sum(covering.seconds[test] for test in tests)
    path.write_text(change.of(text), encoding="utf-8")
    try:
        passed = _passes(tests, tree, scratch, limit_s)
    finally:
        path.write_text(text, encoding="utf-8")
    end = "survived" if passed else "killed"
    return Outcome(change=change, fate=end, num_tests=len(tests), seconds=time.perf_counter() - started)


def _passes(tests: list[str], tree: Tree, scratch: Path, limit_s: float) -> bool:
    """Whether the tests pass, up to the first that does not."""
    return _tested(["-x", *tests], tree, scratch, limit_s) == 0


def _failing(tests: list[str], tree: Tree, scratch: Path) -> set[str]:
    """Tests that fail although nothing was changed."""
    report = scratch / "tests.xml"
    report.unlink(missing_ok=True)
    _tested([f"--junitxml={report}", *tests], tree, scratch, LONGEST_S)
    return results(report)[1]


def _tested(arguments: list[str], tree: Tree, scratch: Path, limit_s: float) -> int | None:
    """The status that pytest ends with, in a process of its own; None where its time was over before."""
    child = os.fork()
    if not child:
        os.chdir(ROOT)
        os.environ.update(environment(tree.source, scratch))
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 1))
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(tree.source))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        status = 2
        try:
            status = int(pytest.main([*OPTIONS, *arguments]))
        finally:
            os._exit(status)
    until = time.monotonic() + WAIT_RATIO * limit_s
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, 9)
    os.waitpid(child, 0)
    return None


def survey(
    floor: str, count: int, seed: int, scratch: Path, seen: frozenset[str], under: tuple[str, ...]
) -> list[Outcome]:
    """What comes of every change drawn for a floor; those in ``seen`` were killed before."""
    known = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8"))
    tree = Tree(scratch)
    variables = environment(tree.source, scratch)
    whole = measure(floor, tree.source, scratch, variables)
    with tree.plain(floor) as compiled:
        plain = measure_plain(whole, compiled, tree.source, scratch, variables) if compiled else whole
    plain = whole.beside(plain, compiled)
    preload(tree.source, floor)
    whole = whole.without(_failing(sorted(whole.tests()), tree, scratch))
    for test in sorted(whole.failed):
        print(f"  left out: {test} fails before anything was changed", flush=True)
    if len(whole.failed) > MOST_LEFT_OUT_FRAC * len(whole.seconds):
        raise SystemExit(
            f"{len(whole.failed)} tests of {len(whole.seconds)} fail: nothing can be learned from the rest."
        )
    plain = plain.without(whole.failed)
    outcomes: list[Outcome] = []
    for change in drawn(floor, count, seed, under):
        if change.name in known:
            outcome = Outcome(change=change, fate="equivalent", num_tests=0, seconds=0.0)
        elif change.name in seen:
            outcome = Outcome(change=change, fate="killed", num_tests=0, seconds=0.0)
        else:
            outcome = fate(change, tree, plain if change.path in compiled else whole, scratch)
        outcomes.append(outcome)
        if outcome.fate == "survived":
            print(f"  survived ({outcome.num_tests} tests) line {change.line}: {change.name}", flush=True)
    return outcomes


def main() -> None:
    """Survey floors and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--floors",
        nargs="+",
        choices=FLOORS,
        default=FLOORS,
        metavar="FLOOR",
        help="(default: all)",
    )
    parser.add_argument("--count", type=int, default=60, help="changes drawn of each floor (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw (default: %(default)s)")
    parser.add_argument(
        "--under",
        nargs="+",
        default=("",),
        metavar="PATH",
        help="draw only from files of a floor whose path begins so, such as serving/simulation/sleeping/",
    )
    parser.add_argument("--json", type=Path, help="file for what came of each change")
    parser.add_argument("--again", type=Path, help="such a file of the same draw: only its survivors are tried again")
    arguments = parser.parse_args()
    before = json.loads(arguments.again.read_text(encoding="utf-8")) if arguments.again else {}
    weak, found = [], {}
    for floor in arguments.floors:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="orrery-mutants-") as folder:
            fates = {fate: {one["change"] for one in before.get(floor, ()) if one["fate"] == fate} for fate in FATES}
            seen = frozenset(fates["killed"] - fates["survived"])  # two changes of a line may read alike
            outcomes = survey(floor, arguments.count, arguments.seed, Path(folder), seen, tuple(arguments.under))
        ends = [outcome.fate for outcome in outcomes]
        rejected, counted = ends.count("killed"), len(ends) - ends.count("equivalent")
        frac = rejected / max(counted, 1)
        took_s, num_equivalent = time.perf_counter() - started, len(ends) - counted
        print(
            f"{floor}: {rejected} of {counted} seen ({100 * frac:.0f} %), {num_equivalent} equivalent, {took_s:.0f} s"
        )
        found[floor] = [{"change": o.change.name, "fate": o.fate, "tests": o.num_tests} for o in outcomes]
        if frac < MIN_FRAC or len(ends) - counted > 0.1 * len(ends):
            weak.append(floor)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if weak:
        sys.exit(f"Fewer than {100 * MIN_FRAC:.0f} % seen, or over a tenth equivalent: {', '.join(weak)}.")


if __name__ == "__main__":
    main()
