"""The digest and its subscriptions from the terminal, a mail server and a browser's requests."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from datetime import date, timedelta
from xml.etree import ElementTree as Xml

import pytest

from orrery.cli.main import run
from orrery.evidence.digest.feeds import ATOM
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store

TODAY = date(2026, 11, 20)


@pytest.fixture
def library(tmp_path):
    """A library with one paper of yesterday."""
    path = tmp_path / "papers.sqlite"
    paper = Entry(
        id="2611.00001",
        title="Paging caches to drives",
        abstract="KV caches of LLM serving move to NVMe drives.",
        source="test",
        num_authors=2,
        published=TODAY - timedelta(days=1),
        url="https://arxiv.org/abs/2611.00001",
    )
    with Store(path) as store:
        save_entries(store, [paper], TODAY)
    return path


def output_of(capsys, *words):
    """The object of a command that ends well."""
    assert run(["papers", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_digest_in_the_terminal_as_json_and_as_files(library, tmp_path, capsys):
    common = ("digest", "--date", "2026-11-20", "--library", str(library))
    found = output_of(capsys, *common)
    assert [paper["id"] for paper in found["papers"]] == ["2611.00001"]
    assert found["title"] == "AI compute: 1 paper, 14 November to 20 November 2026"
    assert run(["papers", *common]) == 0
    assert "Paging caches to drives" in capsys.readouterr().out
    out = tmp_path / "digest.atom"
    assert run(["papers", *common, "--format", "atom", "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert len(Xml.parse(out).getroot().findall(f"{{{ATOM}}}entry")) == 1
    assert output_of(capsys, *common, "--search", "zebra stripes")["papers"] == []


def test_subscriptions_are_listed_changed_and_ended(library, capsys):
    rest = ("--library", str(library))
    output_of(capsys, "subscribe", "Ann@Example.org", "--layer", "serving", "--by", "day", *rest)
    (one,) = output_of(capsys, "subscribe", "Ann@example.org", "--search", "kv cache", *rest)["subscriptions"]
    assert (one["address"], one["layers"], one["searches"]) == ("Ann@example.org", [], ["kv cache"])
    assert (one["state"], one["frequency"]) == ("active", "week")
    (one,) = output_of(capsys, "subscribe", "Ann@example.org", "--end", *rest)["subscriptions"]
    assert one["state"] == "ended"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("subscribe", "--layer", "serving"), "Write the address first"),
        (("subscribe", "nobody"), "no address for letters"),
        (("subscribe", "a@b.cd", "--layer", "srving"), "Did you mean 'serving'"),
        (("subscribe", "a@b.cd", "--technique", "chunked-prefil"), "Did you mean 'chunked-prefill'"),
        (("subscribe", "a@b.cd", "--end"), "has no subscription"),
        (("digest", "--smtp", "smtp://h"), "are for --send"),
        (("digest", "--send"), "needs --smtp URL and --from ADDRESS"),
        (("digest", "--send", "--smtp", "smtp://h", "--from", "a@b.cd", "--layer", "moe"), "leave the choices"),
        (("digest", "--send", "--smtp", "ftp://h", "--from", "a@b.cd"), "write smtp://user@host:587"),
        (("digest", "--send", "--smtp", "smtp://127.0.0.1:1", "--from", "a@b.cd"), "cannot be used"),
        (("digest", "--date", "tomorrow"), "write 2026-11-22"),
        (("serve", "--smtp", "smtp://h", "--from", "a@b.cd", "--site", "http://papers.example.org"), "not https"),
    ],
)
def test_bad_input_says_what_to_write(words, says, library, capsys):
    assert run(["papers", *words, "--library", str(library)]) == 2
    assert says in capsys.readouterr().err


def hears_interrupts():
    """A child of a shell's background job ignores Ctrl-C unless it is told otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_others_subscribe_in_a_browser(library):
    command = [
        sys.executable,
        "-m",
        "orrery",
        "papers",
        "serve",
        "--port",
        "0",
        "--library",
        str(library),
        "--json",
        "--site",
        "https://papers.example.org",
        "--smtp",
        "smtp://127.0.0.1:1",
        "--from",
        "papers@example.org",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts
    ) as process:
        try:
            message = "".join(iter(process.stdout.readline, "}\n")) + "}"
            address = json.loads(message)["address"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/subscribe", address)
            with urllib.request.urlopen(address, timeout=10) as page:
                assert "Subscribe" in page.read().decode()
            with pytest.raises(urllib.error.HTTPError, match="503"):  # its mail server is away, and it says so
                urllib.request.urlopen(address, data=b"address=ann%40example.org", timeout=10)
        finally:
            process.send_signal(signal.SIGINT)
            _, wrong = process.communicate(timeout=10)
    assert "Interrupted." in wrong
