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
WRAPS = ("-W", "ignore:overflow encountered:RuntimeWarning")
"""Whole numbers wrap around in plain Python as compiled ones do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """Tests by line. A test is a file and a function of the tests' folder."""

    by_line: dict[str, dict[int, frozenset[str]]]  # path from the package -> line -> tests
    seconds: dict[str, float]  # test -> how long all its cases take together

    def tests(self) -> set[str]:
        """Every test that runs a line."""
        return {test for of_file in self.by_line.values() for tests in of_file.values() for test in tests}

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


def measure(
    folder: str, source: Path, scratch: Path, environment: dict[str, str], *, is_patient: bool = True
) -> Covering:
    """Run a folder's tests once under coverage; those that fail as it stands, or take too long, are left out."""
    settings, data, report = scratch / "coverage.ini", scratch / "coverage.data", scratch / "tests.xml"
    settings.write_text(f"[run]\ndynamic_context = test_function\nsource = {source / 'orrery'}\ndata_file = {data}\n")
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", f"tests/{folder}", "-q"]
    command += ["-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0", *WRAPS]
    command.append(f"--junitxml={report}")
    if not is_patient:
        command += ["-p", "patience"]
        environment = environment | {"PYTHONPATH": f"{environment['PYTHONPATH']}{os.pathsep}{HERE}"}
    subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for case in ElementTree.parse(report).iter("testcase"):
        test = _test(f"{case.get('classname')}.{(case.get('name') or '').split('[')[0]}")
        seconds[test] = seconds.get(test, 0.0) + float(case.get("time") or 0.0)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
    read = CoverageData(basename=str(data))
    read.read()
    by_line: dict[str, dict[int, frozenset[str]]] = {}
    for file in read.measured_files():
        tests_by_line = {
            line: frozenset(test for context in contexts if (test := _test(context)) in seconds and test not in failed)
            for line, contexts in read.contexts_by_lineno(file).items()
        }
        by_line[os.path.relpath(file, source / "orrery")] = tests_by_line
    return Covering(by_line=by_line, seconds=seconds)


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
