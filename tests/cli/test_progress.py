"""What takes long says how far it is; what is refused is refused before anything is prepared."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import orrery
from orrery.cli.progress import bar, counted, line

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm")
LENGTHS = ("--input-tokens", "100", "--output-tokens", "20")


@pytest.mark.parametrize("command", [("simulate",), ("simulate", "--find-capacity")])
@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((*ONE, *LENGTHS, "--rate", "1", "--model", "llama-3.1-405b"), 3),
        ((*ONE, "--rate", "1"), 2),
        ((*ONE, "--trace", "nowhere.csv"), 2),
        ((*ONE, *LENGTHS, "--batch", "4"), 2),
    ],
)
def test_refusals_come_before_preparation(command, flags, code, describe, monkeypatch):
    for module in ("simulate", "capacity"):
        monkeypatch.setattr(f"orrery.scenario.{module}.warm_up", lambda service: pytest.fail("it was prepared"))
    assert describe(*command, *flags)[0] == code


def test_a_search_tells_how_far_it_is():
    classification = []
    orrery.plan(
        model="llama-3.1-8b",
        device="h100-sxm",
        rate=1,
        input_tokens=100,
        output_tokens=20,
        max_devices=1,
        weights="bf16",
        on_progress=lambda done, total: classification.append((done, total)),
    )
    assert classification
    assert [done for done, _ in classification] == list(range(1, len(classification) + 1))
    assert classification[-1][0] == classification[-1][1]
    assert all(done <= total for done, total in classification)


def test_a_bar_is_only_for_terminals(capsys):
    with bar("runs") as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_count_says_how_long_the_rest_takes():
    assert line(0, 50_000, 2.0) == "0 of 50,000 requests simulated"
    assert line(10_000, 50_000, 3.0) == "10,000 of 50,000 requests simulated, 12 s left"


def test_a_long_simulation_is_counted_on_a_terminal():
    """A pseudo-terminal stands for standard error; a slow count is read from shared memory by the other process."""
    import pty

    program = (
        "import time\n"
        "from multiprocessing import RawArray\n"
        "from orrery.cli import progress\n"
        "if __name__ == '__main__':\n"
        "    counts = RawArray('q', 3)\n"
        "    progress.FIRST_S = 0.1\n"
        "    with progress.counted(counts, 2, 100_000):\n"
        "        for i in range(12):\n"
        "            counts[2] = 1_000 * i\n"
        "            time.sleep(0.1)\n"
    )
    ours, theirs = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.py"
        path.write_text(program)
        subprocess.run([sys.executable, str(path)], stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    message = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "of 100,000 requests simulated, " in message
    assert message.rstrip().endswith("\x1b[K")


def test_few_requests_of_many_tokens_take_long_too(monkeypatch) -> None:
    begun = []
    monkeypatch.setattr("sys.stderr", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    monkeypatch.setattr(
        "multiprocessing.get_context",
        lambda _: SimpleNamespace(
            Process=lambda **_: SimpleNamespace(
                start=lambda: begun.append(1), terminate=lambda: None, join=lambda: None
            )
        ),
    )
    for num_tokens, requested in ((1_000, 0), (200_000_000, 1)):
        with counted([0] * 3, 2, 200, num_tokens):
            assert len(begun) == requested
