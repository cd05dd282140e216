"""Which tests of a folder run which lines, and how long each takes."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from coverage import CoverageData

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHORT_S = 0.3
"""A test that takes longer beside compiled rooms, on a busy machine, computes for minutes beside plain ones, some 100
times slower."""
WRAPS = ("-W", "ignore:overflow encountered:RuntimeWarning")
"""Whole numbers wrap around in plain Python as compiled ones do."""

PLUGINS = ("-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0", "-p", "xdist.plugin")
"""What tests need, and the one whose options pyproject.toml sets: none is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """Tests by line. A test is a file and a function of the tests' folder."""

    by_line: dict[str, dict[int, frozenset[str]]]  # path from the package -> line -> tests
    seconds: dict[str, float]  # test -> how long all its cases take together
    failed: frozenset[str] = frozenset()  # tests that fail before anything is changed

    def without(self, more: Iterable[str]) -> "Covering":
        """The same, but for some tests that fail."""
        failed = self.failed.union(more)
        kept = {
            file: {line: of_line - failed for line, of_line in of_file.items()}
            for file, of_file in self.by_line.items()
        }
        return Covering(by_line=kept, seconds=self.seconds, failed=failed)

    def beside(self, plain: "Covering", files: Iterable[str]) -> "Covering":
        """The same, and for some files also the tests that reached their lines while all of them were plain Python."""
        lines = dict(self.by_line)
        for file in files:
            one, other = self.by_line.get(file, {}), plain.by_line.get(file, {})
            lines[file] = {n: one.get(n, frozenset()) | other.get(n, frozenset()) for n in one.keys() | other.keys()}
        took = {test: max(s, plain.seconds.get(test, 0.0)) for test, s in self.seconds.items()}
        return Covering(by_line=lines, seconds=took, failed=self.failed)

    def tests(self) -> set[str]:
        """Every test that passes, whether or not it runs a line: some read what an import made, and no more."""
        return self.seconds.keys() - self.failed

    def tests_of(self, path: str, lines: Iterable[int]) -> list[str]:
        """The tests that run some lines, the shortest first. Of lines that only an import runs, those of the file, and
        then all others: whoever imports a constant reads it without running its line."""
        of_file = self.by_line.get(path, {})
        found = {test for line in lines for test in of_file.get(line, ())}
        if found or not any(line in of_file for line in lines):
            return self._shortest_first(found)
        first = {test for tests in of_file.values() for test in tests}
        return self._shortest_first(first) + self._shortest_first(self.tests() - first)

    def _shortest_first(self, tests: set[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))


def measure(folder: str, source: Path, scratch: Path, environment: dict[str, str]) -> Covering:
    """Which lines the tests of a folder run, all of them once under coverage; those that fail are left out."""
    return _measured([f"tests/{folder}"], f"source = {source / 'orrery'}", source, scratch, environment)


def measure_plain(
    whole: Covering, files: Iterable[str], source: Path, scratch: Path, environment: dict[str, str]
) -> Covering:
    """Which lines of some files, compiled otherwise, are run by which of the tests that are short even as plain Python.

    A test that takes too long is left out.
    """
    short = sorted(test for test in whole.tests() if whole.seconds[test] < SHORT_S)
    include = "include =" + "".join(f"\n    {source / 'orrery' / file}" for file in sorted(files))
    paths = f"{environment['PYTHONPATH']}{os.pathsep}{HERE}"
    return _measured(["-p", "patience", *short], include, source, scratch, environment | {"PYTHONPATH": paths})


def _measured(tests: list[str], files: str, source: Path, scratch: Path, environment: dict[str, str]) -> Covering:
    settings, data, report = scratch / "coverage.ini", scratch / "coverage.data", scratch / "tests.xml"
    settings.write_text(f"[run]\ndynamic_context = test_function\n{files}\ndata_file = {data}\n")
    data.unlink(missing_ok=True)
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q"]
    command += [*PLUGINS, *WRAPS, "--continue-on-collection-errors", f"--junitxml={report}", *tests]
    report.unlink(missing_ok=True)
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"No test ran: {' '.join(command)}\n{ran.stderr or ran.stdout}")
    seconds, failed = results(report)
    read = CoverageData(basename=str(data))
    read.read()
    by_line = {
        os.path.relpath(file, source / "orrery"): {
            line: frozenset(test for context in contexts if (test := _test(context)) in seconds)
            for line, contexts in read.contexts_by_lineno(file).items()
        }
        for file in read.measured_files()
    }
    return Covering(by_line=by_line, seconds=seconds).without(failed)


def results(report: Path) -> tuple[dict[str, float], set[str]]:
    """How long each test of a report took, all its cases together, and the tests that failed."""
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for case in ElementTree.parse(report).iter("testcase"):
        of_file, name = case.get("classname"), (case.get("name") or "").split("[")[0]
        test = _test(f"{of_file}.{name}") if of_file else f"{name.replace('.', '/')}.py"  # a file that is no test
        seconds[test] = seconds.get(test, 0.0) + float(case.get("time") or 0.0)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
    return seconds, failed


def lines_of(text: str, line: int) -> range:
    """The lines of the statement (of its head, where it has a body) that a line belongs to."""
    best = range(line, line + 1)
    width = float("inf")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else (node.end_lineno or line)
            if line <= max(last, node.lineno) and last - node.lineno < width:
                best, width = range(node.lineno, max(last, node.lineno) + 1), last - node.lineno
    return best


def _test(dotted: str) -> str:
    """``tests.kernels.test_gemm.test_rates`` as pytest names it."""
    module, _, function = dotted.rpartition(".")
    return f"{module.replace('.', '/')}.py::{function}"
