"""Wrong changes are made where they should be, and only there."""

import os
import subprocess
import sys

from changes import changes_of
from covering import PLUGINS, ROOT, Covering, lines_of, results

SOURCE = '''"""Text with 1 + 1."""

def rate(bytes: int | None = 2, seconds: float = 1.5) -> float:
    """Not 3 < 4."""
    if bytes is None or seconds <= 0:
        raise ValueError(f"{seconds + 1} s")
    return max(bytes, 0) * 8 / seconds
'''


def test_the_package_is_not_loaded_before_its_copy():
    """Or the tests of a change would run on the package as it is, and see nothing."""
    program = "import sys, run; print(sorted(name for name in sys.modules if name.split('.')[0] == 'orrery'))"
    folder = ROOT / "tools" / "mutants"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_operator_bound_constant_and_call_changes_once():
    found = [(change.line, change.old, change.new) for change in changes_of("x.py", SOURCE)]
    assert found == [
        (3, "2", "4"),
        (3, "1.5", "3.0"),
        (5, "bytes is None or seconds <= 0", "(not (bytes is None or seconds <= 0))"),
        (5, "or", "and"),
        (5, "<=", "<"),
        (5, "0", "1"),
        (7, "max", "min"),
        (7, "0", "1"),
        (7, "*", "/"),
        (7, "8", "16"),
        (7, "/", "*"),
    ]


def test_a_change_is_made_in_its_place():
    texts = [change.of(SOURCE) for change in changes_of("x.py", SOURCE)]
    assert len(set(texts)) == len(texts)
    assert "return min(bytes, 0) * 8 / seconds" in texts[6]


def test_letters_of_several_bytes_move_nothing():
    (change,) = changes_of("x.py", 'µ = "é" if b else c\n')
    assert (change.old, change.new) == ("b", "(not (b))")


def test_lengths_that_a_zip_checks_are_no_computation():
    assert changes_of("x.py", "pairs = zip(a, b, strict=True)\n") == []
    assert [c.new for c in changes_of("x.py", "pairs = sorted(a, reverse=True)\n")] == ["False"]


def test_a_statement_reaches_over_its_lines_and_a_body_is_not_its_head():
    text = "if (a and\n    b):\n    c = (1 +\n        2)\n"
    assert list(lines_of(text, 2)) == [1, 2]
    assert list(lines_of(text, 4)) == [3, 4]


def test_tests_are_those_of_the_line_and_of_the_whole_folder_where_an_import_alone_runs_it():
    covering = Covering(
        by_line={
            "a.py": {1: frozenset(), 2: frozenset({"slow", "quick"}), 3: frozenset({"quick"})},
            "b.py": {1: frozenset(), 2: frozenset({"other"})},
        },
        seconds={"slow": 2.0, "quick": 1.0, "other": 0.5},
    )
    assert covering.tests_of("a.py", [3]) == ["quick"]
    assert covering.tests_of("a.py", [2]) == ["quick", "slow"]
    assert covering.tests_of("a.py", [1]) == ["quick", "slow", "other"]
    assert covering.tests_of("a.py", [9]) == covering.tests_of("c.py", [1]) == []


REPORT = """<testsuites><testsuite>
<testcase classname="tests.kernels.test_gemm" name="test_rates[a]" time="0.5"/>
<testcase classname="tests.kernels.test_gemm" name="test_rates[b]" time="0.25"><failure message=""/></testcase>
<testcase classname="tests.kernels.test_gemm" name="test_sums" time="0.1"/>
<testcase classname="" name="tests.kernels.test_moe" time="0.0"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""


def test_cases_of_a_test_count_together_and_what_fails_is_left_out(tmp_path):
    """A file that cannot be collected is named by its path, and is no test."""
    report = tmp_path / "tests.xml"
    report.write_text(REPORT)
    seconds, failed = results(report)
    rates, sums, moe = "tests/kernels/test_gemm.py::test_rates", "tests/kernels/test_gemm.py::test_sums", "test_moe.py"
    assert seconds == {rates: 0.75, sums: 0.1, f"tests/kernels/{moe}": 0.0}
    assert failed == {rates, f"tests/kernels/{moe}"}
    covering = Covering(by_line={"a.py": {1: frozenset({rates, sums}), 2: frozenset({rates})}}, seconds=seconds)
    left = covering.without(failed)
    assert left.tests() == {sums}
    assert left.tests_of("a.py", [1]) == [sums]
    assert left.without({sums}).failed == failed | {sums}


def test_a_test_that_runs_no_line_is_tried_on_what_only_an_import_runs():
    covering = Covering(by_line={"a.py": {1: frozenset(), 2: frozenset({"near"})}}, seconds={"near": 2.0, "reads": 0.1})
    assert covering.tests_of("a.py", [1]) == ["near", "reads"]
    assert covering.tests_of("a.py", [2]) == ["near"]


def test_a_compiled_file_is_reached_by_what_ran_it_plain_in_either_run():
    """A long test that ran a line as plain Python anyway, and a short one that did where nothing was compiled."""
    lines = {"k.py": {1: frozenset({"long"})}, "a.py": {1: frozenset({"b"})}}
    whole = Covering(by_line=lines, seconds={"long": 5.0, "b": 0.1})
    plain = Covering(by_line={"k.py": {1: frozenset({"b"}), 2: frozenset({"b"})}}, seconds={"b": 3.0})
    both = whole.beside(plain, ["k.py"])
    assert both.tests_of("k.py", [1]) == ["b", "long"]
    assert both.tests_of("k.py", [2]) == ["b"]
    assert both.tests_of("a.py", [1]) == ["b"]
    assert both.seconds == {"long": 5.0, "b": 3.0}


def test_the_plugins_that_are_loaded_know_every_option_of_the_project():
    command = [sys.executable, "-m", "pytest", "--collect-only", *PLUGINS, __file__]
    without = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ""}
    ran = subprocess.run(command, cwd=ROOT, env=without, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
