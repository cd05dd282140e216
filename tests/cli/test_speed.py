"""Help and version are instant: nothing heavy is imported for them."""

import resource
import subprocess
import sys

import pytest

from orrery import __version__

HEAVY = ("numpy", "numba", "pydantic", "rich", "scipy")
PROGRAM = "import sys; from orrery.cli.main import run; code = run(sys.argv[1:]); sys.stdout.flush(); "
REPORT = f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"


def children_s() -> float:
    """Processor time of finished children: what a quiet machine would take, whatever else runs on this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["estimate", "--help"],
        ["plan", "--help"],
        ["why", "--help"],
        ["show", "--help"],
        ["check", "--help"],
    ],
)
def test_help_imports_nothing_heavy_and_is_quick(arguments: list[str]) -> None:
    def once() -> float:
        start = children_s()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM + REPORT, *arguments], capture_output=True, text=True, check=True
        )
        assert "LOADED []" in done.stderr
        return children_s() - start

    assert any(once() < 0.3 for _ in range(3))


def test_the_version_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + REPORT, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"orrery, version {__version__}"
