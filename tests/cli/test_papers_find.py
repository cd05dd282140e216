"""``orrery papers list``, ``search`` and ``show``."""

import json
import os
import resource
import subprocess
import sys

import pytest

from orrery.evidence.paper_file import get_paper, paper_keys


@pytest.fixture(autouse=True)
def no_library_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_LIBRARY", str(tmp_path / "library.sqlite"))


def test_the_list_has_every_paper(describe):
    code, out, _ = describe("papers", "list", "--json")
    found = json.loads(out)
    assert code == 0
    assert tuple(sorted(paper["key"] for paper in found["papers"])) == paper_keys()
    assert found["num_all"] == len(paper_keys())


def test_the_list_is_narrowed(describe):
    code, out, _ = describe("papers", "list", "--layer", "serving", "--device", "a100", "--year", "2024")
    assert code == 0
    assert "distserve" in out
    assert "energonai" not in out  # 2022
    assert "zero-offload" not in out


def test_an_empty_list_says_so(describe):
    code, out, _ = describe("papers", "list", "--layer", "serving", "--kind", "survey")
    assert code == 0
    assert "0 of" in out


def test_a_search_says_why(describe):
    code, out, _ = describe("papers", "search", "softmax", "with fewer passes over memory", "--json")
    hits = json.loads(out)["hits"]
    assert code == 0
    assert hits[0]["key"] == "two-pass-softmax"
    assert "softmax" in hits[0]["because"]
    assert hits[0]["score_ratio"] >= hits[-1]["score_ratio"]
    code, out, _ = describe("papers", "search", "softmax with fewer passes over memory", "--limit", "1")
    assert "two-pass-softmax" in out
    assert "because: " in out


def test_a_search_within_a_filter(describe):
    _, out, _ = describe("papers", "search", "serving", "--year", "2024", "--json")
    hits = json.loads(out)["hits"]
    assert hits
    assert {hit["year"] for hit in hits} == {2024}


def test_a_search_that_finds_nothing_and_one_that_asks_nothing(describe):
    code, out, _ = describe("papers", "search", "zzyzx")
    assert code == 0
    assert "Nothing is known" in out
    code, out, err = describe("papers", "search", "??", "--json")
    assert code == 2
    assert "no word to look for" in json.loads(out)["error"]["message"]
    assert "no word to look for" in err


def test_a_misspelled_word_is_told_beside_the_answer(describe):
    _, out, err = describe("papers", "search", "disagregated serving", "--json")
    assert json.loads(out)["read_as"] == {"disagregated": "disaggregated"}
    assert "note: 'disagregated' is read as 'disaggregated'" in err


def test_an_entry_reads_like_one(describe):
    code, out, _ = describe("papers", "show", "two-pass-softmax")
    assert code == 0
    for words in (
        "The Two-Pass Softmax Algorithm",
        "https://arxiv.org/abs/2001.04438",
        "Method",
        "Benefits and costs",
        "Sensitivity",
        "Claims: reported vs predicted",
        "speedup-avx512",
        "Unstated settings",
        "Related",
    ):
        assert words in out


def test_an_entry_as_json(describe):
    code, out, _ = describe("papers", "show", "2401.09670", "--no-curve", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["key"] == "distserve"
    assert found["curve"] is None
    assert len(found["claims"]) == len(get_paper("distserve").claims)


def test_a_citation(describe):
    code, out, _ = describe("papers", "show", "holmes", "--bibtex")
    assert code == 0
    assert out.startswith("@misc{holmes,")
    assert "eprint = {2312.03549}" in out
    _, out, _ = describe("papers", "show", "holmes", "--bibtex", "--json")
    assert json.loads(out)["bibtex"].startswith("@misc{holmes,")


def test_an_unknown_paper_is_refused_with_the_nearest(describe):
    code, _, err = describe("papers", "show", "distserv")
    assert code == 2
    assert "'distserve'" in err
    code, _, err = describe("papers", "show", "../papers/distserve")
    assert code == 2


FEED = """<feed xmlns="http://www.w3.org/2005/Atom"><entry>
<id>http://arxiv.org/abs/2512.00001v1</id><published>2025-12-01T00:00:00Z</published><updated>2025-12-01T00:00:00Z</updated>
<title>Marmalade Attention [bold]</title><author><name>A. Lee</name></author>
<summary>We spread marmalade over attention and get up to 2.5x higher throughput than vLLM in LLM serving.</summary>
</entry></feed>"""


def test_a_fetched_paper_is_shown_and_found(describe, tmp_path):
    feed = tmp_path / "feed.xml"
    feed.write_text(FEED)
    assert describe("papers", "add", feed)[0] == 0
    code, out, _ = describe("papers", "show", "arXiv:2512.00001")
    assert code == 0
    assert "Marmalade Attention [bold]" in out
    assert "layer: serving" in out
    assert "no paper file yet" in out
    found = json.loads(describe("papers", "show", "2512.00001", "--json")[1])
    assert found["understood"]["layer"] == "serving"
    assert "author = {A. Lee}" in describe("papers", "show", "2512.00001", "--bibtex")[1]
    assert json.loads(describe("papers", "search", "marmalade", "--json")[1])["hits"] == []
    hits = json.loads(describe("papers", "search", "marmalade", "--fetched", "--json")[1])["hits"]
    assert [hit["key"] for hit in hits] == ["2512.00001"]


HEAVY = ("numpy", "numba", "pydantic", "rich", "duckdb")


def spent(*arguments):
    """Processor time of a command, and which heavy packages it loaded; what a quiet machine would take."""
    program = (
        "import sys; from orrery.cli.main import run; code = run(sys.argv[1:]); sys.stdout.flush(); "
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # threads that wait for each other count as work
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, env=alone
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", [(), ("list",), ("search",), ("show",)])
def test_help_is_instant(command):
    runs = (spent("papers", *command, "--help") for _ in range(2))
    assert any(time < 0.3 and loaded == "LOADED []" for time, loaded in runs)


def test_a_search_takes_no_time():
    runs = (spent("papers", "search", "fine-tune 175B on one consumer GPU") for _ in range(3))
    assert any(time < 0.7 and "numba" not in loaded for time, loaded in runs)
