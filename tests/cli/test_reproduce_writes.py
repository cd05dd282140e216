"""``orrery reproduce`` leaves the package and the checkout alone unless it is told to write."""

from pathlib import Path

import pytest

import orrery

ROOT = Path(orrery.__file__).parents[2]
KEPT = ("docs/papers.md", "docs/papers.svg", "src/orrery/evidence/accuracy.toml")


@pytest.fixture
def written(monkeypatch, tmp_path):
    """What was published; the journal lies elsewhere."""
    calls = []
    monkeypatch.setattr("orrery.evidence.judge.publish.publish", lambda papers: calls.append(set(papers)) or ())
    monkeypatch.setattr("orrery.evidence.judge.run.JOURNAL", tmp_path / "reproduce.jsonl")
    return calls


@pytest.mark.parametrize("flags", [(), ("--no-write",), ("--json",)])
def test_nothing_is_written_unasked(flags, describe, written):
    before = {name: (ROOT / name).read_bytes() for name in KEPT if (ROOT / name).exists()}
    code, _, wrong = describe("reproduce", "tempi", "--workers", "1", *flags)
    assert code == 0
    assert written == []
    assert "Wrote" not in wrong
    assert before == {name: (ROOT / name).read_bytes() for name in before}


def test_write_is_an_order(describe, written):
    code, _, wrong = describe("reproduce", "tempi", "--workers", "1", "--write")
    assert (code, written, "Wrote the scorecard" in wrong) == (0, [{"tempi"}], True)


def test_write_outside_a_checkout_is_refused_before_anything_runs(describe, written, monkeypatch):
    monkeypatch.setattr("orrery.evidence.judge.publish.is_checkout", lambda: False)
    monkeypatch.setattr("orrery.evidence.judge.run.rerun", lambda *a, **k: pytest.fail("it ran"))
    code, _, wrong = describe("reproduce", "tempi", "--write")
    assert (code, "needs a source checkout" in wrong) == (2, True)
