"""Commands on new papers: fetch, trending, mark, add; against saved files and a server in this process."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from orrery.evidence.paper_file import get_paper

ABSTRACT = (
    "Requests of language models are served with continuous batching; prefill and decode share the GPU. Our scheduler "
    "improves goodput by up to 2.5x compared to vLLM, and keeps time to first token within its objective."
)
PAGE = f"""Daily Papers

Nov 21

Fair Serving of Long Prompts

{ABSTRACT}

  • 4 authors
·
Nov 20 2

Painting With <script>alert(1)</script> Four Bits

{"Weights are quantized to INT4 and pictures are painted. " * 8}
"""
OWN = """
title = "Our own measurements"
year = 2026
arxiv = "2611.04242"
layer = "serving"
kind = "measurement"
fit = "core"
mechanism = "One thing. Then another."
techniques = ["chunked-prefill"]

[sources.paper]
title = "Our own measurements"
retrieved = "2026-11"

[[setup]]
name = "one"

[[claim]]
id = "goodput"
metric = "goodput_ratio"
reported = 1.4
unit = "ratio"
setup = "one"
from = "paper"
at = "table 1"
"""


@pytest.fixture(autouse=True)
def library(tmp_path, monkeypatch):
    path = tmp_path / "data" / "library.sqlite"
    monkeypatch.setenv("ORRERY_LIBRARY", str(path))
    return path


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "daily.txt"
    path.write_text(PAGE, encoding="utf-8")
    return path


@contextmanager
def answering(status, body):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_saved_page_goes_into_the_library_and_out_again(describe, page, library):
    code, out, err = describe("papers", "fetch", "--source", page, "--page-year", 2024, "--json")
    found = json.loads(out)
    assert (code, found["skipped"]) == (0, [])
    assert found["sources"][str(page)]["num_new"] == 2
    assert [p["title"] for p in found["papers"]] == ["Fair Serving of Long Prompts", "Painting With Four Bits"]
    assert found["papers"][0]["published"] == "2024-11-20"
    assert "2 new, 0 updated" in err
    assert library.exists()
    code, out, _ = describe("papers", "trending", "--date", "2024-11-22", "--by", "month", "--json")
    trend = json.loads(out)
    assert (code, trend["num_all"]) == (0, 1), "the other has no date, and was first seen on another day"
    (fair,) = trend["papers"]
    assert fair["understood"]["layer"] == "serving"
    assert fair["understood"]["claims"][0]["high"] == 2.5
    assert fair["score"] == pytest.approx(sum(part["value"] for part in fair["parts"]))


def test_marks_go_into_another_library_and_cite_what_is_good(describe, page, tmp_path):
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    follows = ("--follow", "layer:moe", "--follow", "words:four bits")
    _, out, _ = describe("papers", "mark", "distserve", "--upvote", "--read", *follows, "--json", "--library", one)
    marks = tmp_path / "marks.json"
    marks.write_text(out)
    describe("papers", "mark", "snapkv", "--upvote", "--library", other)
    code, out, _ = describe("papers", "mark", "--import", marks, "--json", "--library", other)
    found = json.loads(out)
    assert (code, found["read"], found["upvoted"]) == (0, ["2401.09670"], ["2401.09670", "2404.14469"])
    assert found["follows"] == {"layer": ["moe"], "technique": [], "words": ["four bits"]}
    code, out, _ = describe("papers", "mark", "--bibtex", "--library", other)
    assert code == 0
    assert out.count("@misc{") == 2
    assert "author = {Yinmin Zhong and Shengyu Liu" in out
    _, out, _ = describe("papers", "mark", "--bibtex", "--json", "--library", other)
    assert [text.split("{")[1].split(",")[0] for text in json.loads(out)["bibtex"]] == ["distserve", "snapkv"]


def test_lists_are_made_filled_handed_out_and_imported(describe, tmp_path):
    one, other, file = tmp_path / "one.sqlite", tmp_path / "other.sqlite", tmp_path / "mine.bib"

    def ask(*words, at=one):
        code, out, err = describe("papers", "lists", *words, "--library", at)
        return code, out or err

    assert "No list yet" in ask()[1]
    code, out = ask("to read", "--add", "distserve", "--add", "snapkv")
    assert (code, out.splitlines()[0]) == (0, "to read: 2 papers")
    assert "DistServe" in out
    assert ask("To Read", "--remove", "2401.09670", "--rename", "later")[1].startswith("later: 1 paper\n")
    assert "<rss" in ask("later", "--form", "rss")[1]
    assert "<feed" in ask("later", "--form", "atom")[1]
    file.write_text(ask("--form", "bibtex")[1])
    assert json.loads(ask("--import", file, "--json", at=other)[1])["lists"].keys() == {"later"}
    marks = tmp_path / "marks.json"
    marks.write_text(describe("papers", "mark", "--json", "--library", other)[1])
    describe("papers", "mark", "--import", marks, "--library", tmp_path / "third.sqlite")
    assert "later: 1 paper" in ask(at=tmp_path / "third.sqlite")[1]
    assert "No list yet" in ask("later", "--delete")[1]
    for words, says in (
        (("--add", "snapkv"), "Say which list"),
        (("later", "--delete", "--add", "snapkv"), "stands alone"),
        (("--form", "rss"), "takes one list"),
        (("later",), "there is no 'later'"),
        (("new", "--add", "no such paper"), "There is no paper"),
    ):
        code, out = ask(*words)
        assert code == 2
        assert says in out
    assert "No list yet" in ask()[1]  # the list that was to hold no paper was not made


def test_marks_that_name_nothing_change_nothing(describe, tmp_path):
    library, marks = tmp_path / "mine.sqlite", tmp_path / "marks.json"
    marks.write_text('{"read": ["2401.09670"], "follows": {"layer": ["mole"]}}')
    code, _, err = describe("papers", "mark", "--import", marks, "--library", library)
    assert code != 0
    assert "mole" in err
    _, out, _ = describe("papers", "mark", "--json", "--library", library)
    assert json.loads(out)["read"] == []


def test_marks_move_papers_and_are_listed(describe, page):
    describe("papers", "fetch", "--source", page, "--page-year", 2024)
    code, out, _ = describe(
        "papers",
        "mark",
        "fair serving of long prompts",
        "--read",
        "--upvote",
        "--follow",
        "words:four bits",
        "--follow",
        "layer:serving",
        "--json",
    )
    marks = json.loads(out)
    assert (code, list(marks["titles"].values())) == (0, ["Fair Serving of Long Prompts"])
    assert marks["follows"] == {"layer": ["serving"], "technique": [], "words": ["four bits"]}
    code, out, _ = describe("papers", "mark", "distserve", "--upvote", "--unfollow", "words:four bits")
    assert "follows words: none" in out
    assert "2401.09670  upvoted  DistServe" in out
    _, out, _ = describe("papers", "trending", "--date", "2024-11-21")
    assert "you have read it" in out
    assert "layer serving, which you follow" in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("mark", "2401.09670"), "Say how"),
        (("mark", "--read"), "Say which papers"),
        (("mark", "--follow", "layer:servin"), "Did you mean 'serving'"),
        (("mark", "--follow", "technique:chunked-prefil"), "Did you mean 'chunked-prefill'"),
        (("mark", "--follow", "colour:red"), "write layer:serving"),
        (("mark", "no such paper", "--read"), "There is no paper"),
        (("fetch", "--source", "arxive"), "There is no source 'arxive'. Did you mean 'arxiv'"),
        (("fetch", "--since", "yesterday"), "write 2026-11-22, or 7d"),
        (("fetch", "--max", "0"), "0"),
        (("fetch", "--since", "\u00b2d"), "write 2026-11-22, or 7d"),
        (("trending", "--date", "0001-01-01"), "write 2026-11-22, or 7d"),
        (("mark", "caf\udce9", "--read"), "write it in UTF-8"),
        (("mark", "a title " * 60, "--read"), "There is no paper"),
        (("trending", "--layer", "servin"), "Did you mean 'serving'"),
        (("trending", "--by", "year"), "year"),
        (("add", "no-such-file.toml"), "neither a file nor an arXiv id"),
    ],
)
def test_a_mistake_is_answered_in_one_line(describe, arguments, why):
    code, out, err = describe("papers", *arguments)
    assert (code, out) == (2, "")
    assert why in err


def test_own_paper_files_are_checked_kept_and_found(describe, tmp_path, library):
    own = tmp_path / "our-runs.toml"
    own.write_text(OWN)
    code, out, _ = describe("papers", "add", own, "--json")
    assert code == 0
    assert json.loads(out)["files"] == {"our-runs": str(library.parent / "papers" / "our-runs.toml")}
    assert get_paper("our-runs").title == "Our own measurements"
    assert describe("papers", "add", own)[0] == 0, "the same once more"
    code, out, err = describe("reproduce", "our-runs", "--json")
    (claim,) = json.loads(out)["claims"]
    assert (code, claim["verdict"], claim["predicted"]) == (0, "not modeled", None)
    assert "a paper of your own" in claim["because"]
    assert "Wrote" not in err
    own.write_text(OWN.replace("2026\n", "2025\n"))
    code, _, err = describe("papers", "add", own)
    assert (code, "write --replace" in err) == (2, True)
    assert describe("papers", "add", own, "--replace")[0] == 0
    for name, text, why in (
        ("bad.toml", "colour = 1\n" + OWN, "unknown key"),
        ("distserve.toml", OWN, "comes with"),
        ("Our Runs.toml", OWN, "small letters"),
        ("odd.toml", OWN.replace("2026\n", '"2026"\n'), "write a number"),
        ("odd.toml", "claim = 5\n" + OWN.partition("[[claim]]")[0], "of the wrong kind"),
    ):
        (tmp_path / name).write_text(text)
        code, _, err = describe("papers", "add", tmp_path / name)
        assert (code, why in err) == (2, True), name


def test_a_source_that_fails_keeps_what_came_and_says_so(describe, page):
    with answering(200, b"Rate exceeded.") as url:
        code, out, err = describe("papers", "fetch", "--source", "rss", "--source", page, "--rss-url", url, "--json")
    found = json.loads(out)
    assert (code, found["sources"]["rss"]["num_new"]) == (0, 0)
    assert found["sources"][str(page)]["num_new"] == 2
    (skipped,) = found["skipped"]
    assert skipped["why"].startswith("rss: is no Atom or RSS feed")
    assert err.count("skipped: ") == 1
    with answering(404, b"") as url:
        code, out, err = describe("papers", "fetch", "--arxiv-url", url)
    assert code == 1
    assert "answers 404" in err
    assert "the next fetch goes on from there" in out


def test_a_paper_by_its_id(describe):
    feed = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry>
    <id>http://arxiv.org/abs/2611.00001v1</id><title>Cold Tokens</title><summary>It is cold.</summary></entry></feed>"""
    with answering(200, feed) as url:
        code, out, _ = describe("papers", "add", "arXiv:2611.00001v1", "--arxiv-url", url, "--json")
    assert code == 0
    assert [p["id"] for p in json.loads(out)["papers"]] == ["2611.00001"]


def test_trending_tries_a_paper_in_the_readers_deployment(describe, page, tmp_path):
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        'model = "llama-3.1-8b"\ndevice = "h100-sxm"\ninput_tokens = 512\noutput_tokens = 32\n'
        "concurrency = 8\nnum_requests = 20\n"
    )
    describe("papers", "fetch", "--source", page, "--page-year", 2024)
    code, out, _ = describe("papers", "trending", "--date", "2024-11-21", "--scenario", scenario, "--json")
    assert code == 0
    (fair,) = json.loads(out)["papers"]
    assert [m["technique"] for m in fair["meaning"]] == [name for name, _ in fair["understood"]["techniques"]]
    assert all(m["because"] and (m["ratio"] is None) == (m["before"] is None) for m in fair["meaning"])
    assert any(
        m["metric"] in ("output_tokens_per_s", "ttft_s") and m["ratio"] > 0.5 for m in fair["meaning"] if m["ratio"]
    )


def test_a_file_of_a_familiar_name_does_not_stand_in_for_a_source(describe, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arxiv").write_text(PAGE)
    with answering(404, b"") as url:
        code, _, err = describe("papers", "fetch", "--arxiv-url", url)
    assert (code, "answers 404" in err) == (1, True)


def test_of_much_that_is_left_out_the_first_is_said(describe, tmp_path):
    many = tmp_path / "many.txt"
    many.write_text("\n".join(f"Title {i}" for i in range(500)))
    code, _, err = describe("papers", "fetch", "--source", many)
    assert code == 0
    assert len(err.splitlines()) == 21
    assert "480 more; --json lists every one" in err
