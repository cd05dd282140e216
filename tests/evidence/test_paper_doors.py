"""A paper's command against the same command without its technique: a number that both state moves."""

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orrery.cli.main import run
from orrery.evidence.paper_file import get_paper, paper_keys

ROOT = Path(__file__).resolve().parents[2]
BESIDE_DATA = Path(os.environ.get("ORRERY_DATA", ROOT / "../shared/data")).parent
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| [^|]*`--", re.MULTILINE)
CORE = {key for key in paper_keys() if get_paper(key).fit == "core"}

OFF = {
    "pcpp": ("--patch-parallel 4 --patch-context neighbour", ""),
    "duplex-logic-pim": ("h100-duplex", "h100-sxm"),
    "flightllm": ("kept_frac=1,0.5", "kept_frac=1,1"),
    "agile-quant": ("drop_frac=0.2", "drop_frac=0"),
    "bottlefit": ("--bottleneck conv2_3:12 --bottleneck-bits 8", ""),
    "cbnet-converting-autoencoder": ("--exits conv1:0.6 --converter 784,64,784", ""),
    "melt-mobile": ("--sustained-s 600", "--sustained-s 1"),
    "neural-compression-edge-detection": ("--filter-pass-frac 0.5", "--filter-pass-frac 1"),
    "slimmable-split-encoders": ("conv2_3:3,conv2_3:12,conv2_3:48", "conv2_3:48"),
    "tpi-llm": ("--weight-window 2", "--weight-window 8"),
    "gaussian-weight-sampling": ("--weight-sampling gaussian", ""),
    "i-vit": ("--integer-only", ""),
    "int-vs-fp": ("--rotate", ""),
    "matmul-free-lm": ("--weights ternary", "--weights int4"),
    "mr-gptq": ("--online-rotation 32", ""),
    "nvfp4-pretraining": ("--precision nvfp4", ""),
    "pychop": ("--rounding stochastic", ""),
    "hawq-v3": ("--integer-only", ""),
    "help-latency-predictor": ("--predictor few-shot --measurements docs/data/timings.csv", ""),
    "eeea-net": ("--latency-ratio 0.5", ""),
    "fliqs": ("--memory-ratio 0.7", "--memory-ratio 1"),
    "proxylessnas": ("--min-score-ratio 1", "--min-score-ratio 1.3"),
    "puzzle-nas": ("--latency-ratio 0.7", "--latency-ratio 1"),
}
"""Words of a paper's command that are its technique, and what stands there without it."""

RECIPES = ("bfp-outlier-rearrange", "kurtail", "llm-fp4", "nupes", "zeroquant-fp")
"""Papers whose answer holds rounding to nearest beside their own recipe."""

SETTINGS = {"settings", "deployment", "question", "sizes"}
QUICK = ("i-vit", "mr-gptq", "bottlefit")


def numbers(found: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of an answer by its place, without the settings that it repeats."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name not in SETTINGS:
                yield from numbers(value, f"{path}.{name}")
    elif isinstance(found, list):
        for i, value in enumerate(found):
            yield from numbers(value, f"{path}.{i}")
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield path, float(found)


def answered(command: str) -> dict[str, Any]:
    """The command's answer."""
    message, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(message), contextlib.redirect_stderr(wrong):
        code = run([*shlex.split(command)[1:], "--json"])
    assert code == 0, f"{command}\n{wrong.getvalue()}"
    return json.loads(message.getvalue())


def differ(one: float, other: float) -> bool:
    """Whether two numbers are not the same but for rounding."""
    return abs(one - other) > 1e-6 * max(abs(one), abs(other))


def moves(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where no number in common differs."""
    monkeypatch.chdir(ROOT)
    use, (words, instead) = get_paper(key).use, OFF[key]
    assert words in use, f"{key}: {use} has no {words}"
    on, off = (dict(numbers(answered(command))) for command in (use, use.replace(words, instead)))
    common = on.keys() & off.keys()
    assert any(differ(on[path], off[path]) for path in common), f"{key}: none of {len(common)} numbers moves"


@pytest.mark.parametrize("key", QUICK)
def test_some_techniques_move_an_answer(key, monkeypatch):
    moves(key, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(OFF) - set(QUICK)))
def test_all_other_techniques_move_an_answer(key, monkeypatch):
    moves(key, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", RECIPES)
def test_recipes_do_not_round_to_nearest(key, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = {row["recipe"]: row["output_sqnr_db"] for row in answered(get_paper(key).use)["layers"]}
    nearest = rows.pop("round-to-nearest")
    assert rows
    assert [name for name, sqnr_db in rows.items() if not differ(sqnr_db, nearest)] == []


def test_every_paper_of_a_list_beside_the_data_has_a_command():
    listed = {key for path in BESIDE_DATA.glob("*.md") for key in ROW.findall(path.read_text())} & set(paper_keys())
    if not listed:
        pytest.skip(f"no list of papers and their flags beside the measured tables ({BESIDE_DATA})")
    assert [key for key in sorted(listed) if not get_paper(key).use] == []
    assert listed <= CORE | {key for key in paper_keys() if get_paper(key).use}
