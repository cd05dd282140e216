"""Widths of intervals: sizes of errors where an engine is not known on a generation, and the stretch of levels."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "fit"))

from engine_tree import ROOT as ANY  # noqa: E402
from engine_widths import Errors, calibrated, stretch_of, widths  # noqa: E402

ENGINE, ERA, HERE = ("e", "", ""), ("e", "1", ""), ("e", "1", "g")
KNOWN = (ANY, ENGINE, ERA, HERE)


def errors(values, campaigns, path=KNOWN):
    paths = path if isinstance(path, list) else [path] * len(values)
    return Errors(
        error=np.array(values), mode=("closed",) * len(values), path=tuple(paths), campaign=np.array(campaigns)
    )


def test_levels_are_stretched_until_the_share_is_inside():
    """Ten equal errors of +-0.1 to +-0.5 with levels that end at +-0.2: eight of ten are inside at twice that."""
    given = errors([0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.4, -0.4, 0.5, -0.5], ["a"] * 10)
    found = widths(given)
    flat = {"low_80": -0.2, "high_80": 0.2, "low_95": -0.2, "high_95": 0.2}
    fixed = type(found)(parts={}, levels={"": flat}, stretch={"80": 1.0, "95": 1.0})  # of size 1
    assert stretch_of(given, [(np.arange(10), fixed)], "80") == pytest.approx(2.0, rel=0.02)
    assert stretch_of(given, [(np.arange(10), fixed)], "95") == pytest.approx(2.5, rel=0.02)


def test_widths_that_never_saw_a_campaign_hold_what_they_say():
    """Campaigns that err as one (each its own bias) are held by stretched levels for four in five of them."""
    rng = np.random.default_rng(3)
    bias = np.repeat(rng.normal(0.0, 0.3, 40), 10)
    given = errors((bias + rng.normal(0.0, 0.03, 400)).tolist(), np.repeat(np.arange(40), 10).astype(str))
    spread = calibrated(given).spread("closed", KNOWN)
    inside = (np.log(spread["low_80"]) <= given.error) & (given.error <= np.log(spread["high_80"]))
    assert 0.78 <= inside.mean() <= 0.9
    assert spread["low_95"] < spread["low_80"] < 1 < spread["high_80"] < spread["high_95"]


def test_an_engine_that_nobody_ran_on_a_generation_is_less_known_there():
    """Errors of paths that end above the generation are three times as large: so is the interval of such a node."""
    rng = np.random.default_rng(5)
    small, large = rng.laplace(0.0, 0.05, 200), rng.laplace(0.0, 0.15, 200)
    paths = [KNOWN] * 200 + [(ANY, ENGINE, ERA)] * 200
    given = errors([*small, *large], np.repeat(np.arange(40), 10).astype(str), paths)
    found = widths(given)
    assert found.size("closed", (ANY, ENGINE, ERA)) > 1.8 * found.size("closed", KNOWN)
