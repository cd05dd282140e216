"""Every paper that is run again says what the checked-in scorecard says, and the page is made of that."""

import re
from pathlib import Path

import pytest

from orrery.evidence.judge.claim_result import judge
from orrery.evidence.judge.curve import across
from orrery.evidence.judge.page import page
from orrery.evidence.judge.plot import draw
from orrery.evidence.judge.scorecard import has_moved, moved, read_scorecard, recorded, recorded_curve
from orrery.evidence.paper_file import get_paper, paper_keys
from orrery.evidence.prediction import reproduced_keys
from orrery.evidence.verdict import VERDICTS, verdict

KEYS = reproduced_keys()
SLOW = (
    "apex-simulator",
    "bytescale",
    "checkfree",
    "cloudformer",
    "comet-w4a4kv4",
    "dadao",
    "distserve",
    "domino",
    "eeea-net",
    "ets-tree-search",
    "fasterpam",
    "fedcompass",
    "flashattention-3",
    "fliqs",
    "fp4-design-space",
    "fp8-and-back",
    "fp8-vs-bf16-training",
    "fsmoe",
    "fuyou",
    "gemm-ada-rf",
    "gnnpipe",
    "help-latency-predictor",
    "hybrimoe",
    "la-dnas",
    "layered-prefill",
    "masha",
    "melange",
    "meta-learning-acceleration-choice",
    "minifloat-fpga-ptq",
    "moetuner",
    "nanoflow",
    "ncpp-perfcastdb",
    "polca",
    "proxylessnas",
    "qfx",
    "realhf",
    "sarathi-serve",
    "semi-pd",
    "splitwise",
    "tokenweave",
    "vllm-hyperparameters",
    "xr-npe",
)
"""Trained, drawn, searched or served for seconds."""

MOVED_FRAC = 0.01
DOCS = Path(__file__).parents[2] / "docs"
REMEDY = "Look at why; if it is right, `orrery reproduce KEY --write` writes the scorecard again."


def check(key: str) -> None:
    """Every claim is judged, and no prediction is further from the scorecard's than a hundredth."""
    message = moved(judge(get_paper(key)), MOVED_FRAC)
    assert not message, f"{message}. {REMEDY}"


def test_slow_ones_are_papers() -> None:
    assert set(SLOW) < set(KEYS)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in SLOW])
def test_a_paper_still_says_what_the_scorecard_says(key: str) -> None:
    check(key)


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in KEYS if get_paper(key).sweep])
def test_a_papers_curve_is_that_of_the_scorecard(key: str) -> None:
    assert not has_moved(key, across(get_paper(key)), MOVED_FRAC), REMEDY


@pytest.mark.slow
@pytest.mark.parametrize("key", SLOW)
def test_a_slow_paper_still_says_what_the_scorecard_says(key: str) -> None:
    check(key)


def test_the_scorecard_has_every_claim_that_is_run_again_and_no_other() -> None:
    card = read_scorecard()
    for key in KEYS:
        paper = get_paper(key)
        assert set(card.papers.get(key, {})) == {claim.id for claim in paper.claims if not claim.missing}, key
        assert (recorded_curve(paper) is None) == (paper.sweep is None), key
    assert card.papers.keys() == set(KEYS)
    assert card.curves.keys() <= set(KEYS)


def test_verdicts_in_the_scorecard_follow_from_the_papers_files() -> None:
    for key, lines in read_scorecard().papers.items():
        claims = {claim.id: claim for claim in get_paper(key).claims}
        for name, scored in lines.items():
            assert scored.verdict == verdict(claims[name], scored.predicted), f"{key}/{name}"
            assert scored.because, f"{key}/{name}"


def test_the_page_and_its_picture_are_made_of_the_scorecard() -> None:
    everything = recorded(paper_keys())
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == page(everything, paper_keys())
    assert (DOCS / "papers.svg").read_text(encoding="utf-8") == draw(everything)


def test_at_least_forty_core_papers_have_a_verdict_that_could_have_failed_and_did_not() -> None:
    core = {key for key in KEYS if get_paper(key).fit == "core"}
    held = [key for key in core if any(s.verdict == "reproduced" for s in read_scorecard().papers[key].values())]
    assert len(held) >= 40


def test_the_page_counts_what_its_rows_say() -> None:
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \[([a-z0-9-]+)\]\([^)]*\) \| \w+ \| (\d+) \|((?: \d+ \|){7})$", text)
    assert {key for key, _, _ in rows} == set(paper_keys())
    counts = [[int(x) for x in cells.split("|")[:-1]] for _, _, cells in rows]
    assert [int(claims) for _, claims, _ in rows] == [sum(cells) for cells in counts]
    for column, word in enumerate(VERDICTS[:-1]):
        lines = len(re.findall(rf"(?m)^\| `.* \| {word} \| ", text))
        assert lines == sum(cells[column] for cells in counts), word
