"""Claims judged: complete or refused, run beside each other, kept, written down, and noticed when they move."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fit.accuracy_tables import TABLES, write_tables
from orrery.base.sources import Basis, Fact
from orrery.evidence.accuracy import PAPERS, read_tables
from orrery.evidence.judge import claim_result as judging
from orrery.evidence.judge import run as running
from orrery.evidence.judge.claim_result import ClaimResult, IncompleteReproduction, judge
from orrery.evidence.judge.curve import across
from orrery.evidence.judge.page import page, reported
from orrery.evidence.judge.plot import draw
from orrery.evidence.judge.publish import HELD, ROOT
from orrery.evidence.judge.run import PaperResult, rerun
from orrery.evidence.judge.scorecard import (
    Drawn,
    Scorecard,
    has_moved,
    moved,
    read_scorecard,
    recorded,
    recorded_curve,
    write_scorecard,
)
from orrery.evidence.paper_file import Paper, Sweep, get_paper
from orrery.evidence.prediction import Prediction

QUICK = ("flashrnn", "tempi")


@pytest.fixture
def scorecard(tmp_path: Path) -> Path:
    """An accuracy file with one measured table and no paper."""
    path = tmp_path / "accuracy.toml"
    path.write_text(f"{TABLES}\n[table]\nrows = 3\n\n{PAPERS}\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def quick() -> tuple[ClaimResult, ...]:
    return judge(get_paper("holmes"))


def again(judged: tuple[ClaimResult, ...]) -> dict[str, PaperResult]:
    return {"holmes": PaperResult(judged=judged, curve=None)}


def test_every_claim_is_judged_in_the_order_of_the_file(quick: tuple[ClaimResult, ...]) -> None:
    assert [j.claim for j in quick] == list(get_paper("holmes").claims)
    assert all(j.because for j in quick)
    line = quick[0].to_json()
    assert {"paper", "claim", "reported", "predicted", "ratio", "verdict", "because"} <= line.keys()
    assert json.loads(json.dumps(line)) == line


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p[1:], "neither predicted nor said to be missing"),
        (lambda p: [*p, replace(p[0], claim="nobodys")], "nobodys: predicted, but not among the claims"),
        (lambda p: [replace(p[0], predicted=float("nan")), *p[1:]], "no number"),
        (lambda p: [replace(p[0], predicted=1e-9, differs=""), *p[1:]], "missed, and nothing says why"),
    ],
)
def test_a_reproduction_that_says_too_little_or_too_much_is_refused(change, says, monkeypatch) -> None:
    paper = get_paper("holmes")
    found: list[Prediction] = change(list(judging.predict(paper)))
    monkeypatch.setattr(judging, "predict", lambda _: iter(found))
    with pytest.raises(IncompleteReproduction, match=says):
        judge(paper)


def test_a_claim_with_a_prediction_must_not_say_that_something_is_missing() -> None:
    paper = get_paper("holmes")
    first = replace(paper.claims[0], missing="the authors' own cluster")
    with pytest.raises(IncompleteReproduction, match="though its file says what is missing"):
        judge(replace(paper, claims=(first, *paper.claims[1:])))


@pytest.mark.slow
def test_papers_run_beside_each_other_as_they_do_alone() -> None:
    alone = rerun(QUICK, num_workers=1)
    beside = rerun(QUICK, num_workers=2)
    assert [j.predicted for j in beside.judged] == [j.predicted for j in alone.judged]
    assert [j.paper for j in beside.judged] == [j.paper for j in alone.judged]
    assert not beside.failed


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "made" / "journal.jsonl"
    first = rerun(QUICK[:1], num_workers=1, journal=journal)
    with journal.open("a") as file:
        file.write('{"code": "cut sho')  # the power failed here
    ran: list[str] = []
    monkeypatch.setattr(running, "judge", lambda paper: ran.append(paper.key) or judge(paper))
    done: list[tuple[int, int]] = []
    second = rerun(QUICK, num_workers=1, journal=journal, progress=lambda d, t: done.append((d, t)))
    assert ran == [QUICK[1]]
    assert second.num_resumed == 1
    assert done == [(1, 2), (2, 2)]
    assert second.judged[: len(first.judged)] == first.judged
    third = rerun(QUICK, num_workers=1, journal=journal)  # the torn line has not swallowed the next
    assert (ran, third.num_resumed) == ([QUICK[1]], 2)


DAMAGED = (
    "5",
    "[]",
    "null",
    '{"code": CODE}',
    '{"code": CODE, "paper": 5}',
    '{"code": CODE, "paper": "nobody", "found": []}',
    '{"code": CODE, "paper": "distserve", "found": 5}',
    '{"code": CODE, "paper": "distserve", "found": [["x", 1, ""]]}',
    "[" * 100_000,
)


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    rerun(QUICK[:1], num_workers=1, journal=journal)
    whole, code = journal.read_text(), running.fingerprint()
    journal.write_text("".join(damage.replace("CODE", f'"{code}"') + "\n" for damage in DAMAGED) + whole)
    assert rerun(QUICK[:1], num_workers=1, journal=journal).num_resumed == 1


def test_results_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal.jsonl"
    rerun(QUICK[:1], num_workers=1, journal=journal)
    monkeypatch.setattr(running, "fingerprint", lambda: "another")
    assert rerun(QUICK[:1], num_workers=1, journal=journal).num_resumed == 0


def test_a_paper_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(paper: Paper) -> tuple[ClaimResult, ...]:
        if paper.key == QUICK[0]:
            raise ZeroDivisionError("nothing to divide by")
        return judge(paper)

    monkeypatch.setattr(running, "judge", judged)
    found = rerun(QUICK, num_workers=1)
    assert found.failed == {QUICK[0]: "ZeroDivisionError: nothing to divide by"}
    assert {j.paper for j in found.judged} == {QUICK[1]}


def test_the_scorecard_keeps_what_it_was_given(scorecard: Path, quick: tuple[ClaimResult, ...]) -> None:
    assert len(write_scorecard(again(quick), scorecard)) == len(quick)
    lines = read_scorecard(scorecard)
    back = recorded(("holmes",), lines)
    assert [j.verdict for j in back] == [j.verdict for j in quick]
    assert [j.because for j in back] == [j.because for j in quick]
    assert [j.predicted for j in back] == pytest.approx([j.predicted for j in quick], rel=1e-5)
    assert read_tables(scorecard) == {"table": {"rows": 3}}
    write_tables({"table": {"rows": 4}}, scorecard)
    read_scorecard.cache_clear()
    assert read_scorecard(scorecard) == lines


def test_what_hardly_moves_keeps_its_line_and_what_moves_is_said(
    scorecard: Path, quick: tuple[ClaimResult, ...]
) -> None:
    write_scorecard(again(quick), scorecard)
    text = scorecard.read_text()

    def nudged(by: float) -> tuple[ClaimResult, ...]:
        return (replace(quick[3], predicted=quick[3].predicted * by), *quick[:3], *quick[4:])  # type: ignore[operator]

    assert write_scorecard(again(nudged(1.0005)), scorecard) == ()
    assert scorecard.read_text() == text
    assert moved(nudged(1.009), 0.01, read_scorecard(scorecard)) == ()
    (message,) = moved(nudged(1.011), 0.01, read_scorecard(scorecard))
    assert message.startswith("holmes/rate-4-infiniband: ")
    assert len(write_scorecard(again(nudged(1.02)), scorecard)) == 1
    assert scorecard.read_text() != text


def test_a_line_is_written_again_where_its_words_changed_and_not_where_its_numbers_did(
    scorecard: Path, quick: tuple[ClaimResult, ...]
) -> None:
    def told(because: str) -> str:
        write_scorecard(again((replace(quick[0], because=because), *quick[1:])), scorecard)
        return read_scorecard(scorecard).papers["holmes"][quick[0].claim.id].because

    assert told("15+15 layers: 11.20 s of 1.5e-3 and 2,048") == "15+15 layers: 11.20 s of 1.5e-3 and 2,048"
    assert told("15+15 layers: 11.21 s of 1.6e+4 and 2,049") == "15+15 layers: 11.20 s of 1.5e-3 and 2,048"
    assert told("15+15 layers: 11.21 s, links assumed") == "15+15 layers: 11.21 s, links assumed"


def test_a_claim_that_is_gone_or_new_has_moved(scorecard: Path, quick: tuple[ClaimResult, ...]) -> None:
    write_scorecard(again(quick), scorecard)
    gone = replace(quick[0], predicted=None)
    assert "nothing now" in moved([gone], 0.01, read_scorecard(scorecard))[0]
    assert "nothing in the file" in moved(quick[:1], 0.01, Scorecard(papers={}, curves={}))[0]


def test_the_page_has_every_claim_and_what_is_missing(quick: tuple[ClaimResult, ...]) -> None:
    lost = replace(quick[0], predicted=None, because="its cluster is nowhere described")
    text = page([lost, *quick[1:]], ("holmes",))
    assert text.count("| reproduced |") == 1 + sum(j.verdict == "reproduced" for j in quick[1:])
    assert f"- `{lost.claim.id}` ({reported(lost)}): its cluster is nowhere described" in text
    assert "1 not modeled" in text


def test_the_picture_has_a_point_for_each_positive_claim(quick: tuple[ClaimResult, ...]) -> None:
    picture = draw([*quick, replace(quick[0], predicted=-1.0), replace(quick[0], predicted=None)])
    assert picture.count(": reported ") == len(quick)
    assert picture.count("</svg>") == 1
    assert "holmes, above-ethernet: reported at least 1" in picture


def test_a_kind_without_claims_has_no_panel(quick: tuple[ClaimResult, ...]) -> None:
    ratios = [one for one in quick if one.claim.unit == "ratio"]
    assert ratios
    assert "nothing to draw" not in draw(ratios)
    assert "everything else" not in draw(ratios)
    assert draw([]).count("nothing to draw") == 1


def test_a_sweep_replaces_one_input_and_leaves_the_rest() -> None:
    paper = get_paper("two-pass-softmax")
    facts = tuple(
        Fact(name="host_memory_bytes_per_s", value=x, basis=Basis.ASSUMED, source=None, at="", note="swept")
        for x in (20e9, 85.3e9, 1e12)
    )
    sweep = Sweep(claim="speedup-avx512", input="host_memory_bytes_per_s", values=facts)
    curve = across(replace(paper, sweep=sweep))
    scarce, stated, plenty = curve.predicted
    assert curve.values == (20e9, 85.3e9, 1e12)
    assert scarce > stated > plenty
    assert curve.neutral == 0.0
    assert stated == pytest.approx(next(j.predicted for j in judge(paper) if j.claim.id == "speedup-avx512"))


def test_curves_are_kept_beside_the_claims(scorecard: Path) -> None:
    paper = get_paper("two-pass-softmax")
    facts = tuple(
        Fact(name="num_cores", value=float(x), basis=Basis.ASSUMED, source=None, at="", note="swept") for x in (1, 6, 9)
    )
    swept = replace(paper, sweep=Sweep(claim="speedup-avx512", input="num_cores", values=facts))
    curve = across(swept)
    card = Scorecard(papers={}, curves={paper.key: Drawn.of(curve)})
    assert recorded_curve(swept, card) == curve
    other = replace(Drawn.of(curve), sweep="speedup-avx512 across num_cores: 1, 6, 10")
    assert recorded_curve(swept, replace(card, curves={paper.key: other})) is None
    assert recorded_curve(paper, Scorecard(papers={}, curves={})) is None
    assert not has_moved(paper.key, curve, 0.01, card)
    assert has_moved(paper.key, replace(curve, predicted=tuple(1.02 * x for x in curve.predicted)), 0.01, card)
    assert has_moved(paper.key, None, 0.01, card)


def test_the_readme_counts_papers_as_their_page_does() -> None:
    counts = [HELD.search((ROOT / name).read_text(encoding="utf-8")) for name in ("README.md", "docs/papers.md")]
    assert all(counts)
    assert len({found[0] for found in counts if found}) == 1, "python -m orrery reproduce KEY --write writes both"
