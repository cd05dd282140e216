"""Compiled functions against their own source run as plain Python: the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orrery.base.compiled import PLAIN, extension_of

BATTERY = Path(__file__).parent / "kernel_battery.py"
ROOMS = ("kernels", "numerics", "planner")


def run(path: Path, **environment: str) -> tuple[str, dict[str, np.ndarray]]:
    """Which way the battery ran, and its answers."""
    message = subprocess.run(
        [sys.executable, str(BATTERY), str(path)],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with np.load(path) as found:
        return message.stdout.split()[0], dict(found)


@pytest.mark.skipif(
    any(extension_of(room) is None for room in ROOMS), reason="the engine rooms were not compiled from these sources"
)
def test_plain_python_gives_the_same_bits(tmp_path: Path) -> None:
    """Every compiled function of the vectorised rooms, on sizes, numbers and arrays drawn widely."""
    (ran, compiled), (other, plain) = run(tmp_path / "compiled.npz"), run(tmp_path / "plain.npz", **{PLAIN: "1"})
    assert (ran, other) == ("compiled", "plain")
    assert compiled.keys() == plain.keys()
    exported = {(module, name) for room in ROOMS for module, name in extension_of(room).FUNCTIONS}  # pyright: ignore
    assert {tuple(label.split()[:2]) for label in compiled} == exported
    for label, values in compiled.items():
        bits = f"u{values.dtype.itemsize}"
        both_nan = np.isnan(values) & np.isnan(plain[label]) if values.dtype.kind == "f" else np.False_
        assert ((values.view(bits) == plain[label].view(bits)) | both_nan).all(), label
