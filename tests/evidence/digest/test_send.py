"""Letters: encrypted, with headers that end a subscription, each once whatever crashes."""

import email
import email.policy
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.digest import send as sending
from orrery.evidence.digest.email_message import Sender, confirm_letter, digest_letter
from orrery.evidence.digest.issue import compose
from orrery.evidence.digest.post import Server, connected
from orrery.evidence.digest.send import send_due, unsure
from orrery.evidence.digest.subscription import SubscriptionFilter, Subscriptions
from orrery.evidence.digest.tokens import Tokens
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.text import title_id

from .conftest import TODAY, entry


def sent(store, sender, mailbox, day=TODAY):
    with connected(Server.of(mailbox.address, mailbox.authority)) as connection:
        return list(send_due(store, day, sender, connection))


def read(envelope):
    return email.message_from_bytes(envelope.content, policy=email.policy.default)


@pytest.fixture
def ann(store):
    return Subscriptions(store).ask("ann@example.org", SubscriptionFilter(), "active")


def test_a_letter_arrives_encrypted_with_both_parts_and_the_headers(store, sender, mailbox, ann):
    (one,) = sent(store, sender, mailbox)
    assert (one.outcome, one.num_papers) == ("sent", 3)
    (envelope,) = mailbox.letters
    letter = read(envelope)
    assert envelope.rcpt_tos == ["ann@example.org"]
    assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert letter["List-Unsubscribe"].startswith("<https://papers.example.org/unsubscribe?token=")
    assert "mailto:papers%40example.org" in letter["List-Unsubscribe"]
    assert letter["Auto-Submitted"] == "auto-generated"
    plain, page = (letter.get_body((kind,)).get_content() for kind in ("plain", "html"))
    assert "Paging the key-value cache" in plain
    assert "&lt;script&gt;" in page
    link = letter["List-Unsubscribe"].split(">")[0].removeprefix("<")
    assert link in plain
    assert f"\r\nList-Unsubscribe: <{link}>, <mailto:".encode() in envelope.content, "in one piece, as others read it"
    assert envelope.content.isascii()
    assert max(map(len, envelope.content.split(b"\r\n"))) <= 998


def test_each_period_has_one_letter_and_each_paper_comes_once(store, sender, mailbox, ann):
    sent(store, sender, mailbox)
    assert sent(store, sender, mailbox) == []
    next_week = TODAY + timedelta(days=3)
    assert [s.outcome for s in sent(store, sender, mailbox, next_week)] == ["empty"]
    save_entries(store, [entry("2611.00007", "Something newer", "About experts.", days_ago=-2)], next_week)
    (later,) = sent(store, sender, mailbox, next_week)
    assert (later.outcome, later.num_papers) == ("sent", 1)
    assert len(mailbox.letters) == 2


def test_pending_and_ended_addresses_get_nothing(store, sender, mailbox, ann):
    subscriptions = Subscriptions(store)
    subscriptions.ask("bob@example.org", SubscriptionFilter(), "pending")
    subscriptions.change(ann.id, "ended")
    assert sent(store, sender, mailbox) == []
    assert mailbox.letters == []


def test_what_the_server_refuses_is_tried_again(store, sender, mailbox, ann):
    mailbox.says = lambda envelope: "451 come back later"
    (one,) = sent(store, sender, mailbox)
    assert (one.outcome, one.text) == ("refused", "451 come back later")
    assert unsure(store) == ()
    mailbox.says = lambda envelope: None
    assert [s.outcome for s in sent(store, sender, mailbox)] == ["sent"]


def test_one_refusal_does_not_stop_the_others(store, sender, mailbox, ann):
    Subscriptions(store).ask("bob@example.org", SubscriptionFilter(), "active")
    mailbox.says = lambda envelope: "550 unknown" if "ann" in envelope.rcpt_tos[0] else None
    assert {s.address: s.outcome for s in sent(store, sender, mailbox)} == {
        "ann@example.org": "refused",
        "bob@example.org": "sent",
    }


def test_a_connection_that_breaks_after_the_letter_leaves_doubt_and_no_second_letter(store, sender, mailbox, ann):
    mailbox.says = lambda envelope: "hang up"
    (one,) = sent(store, sender, mailbox)
    assert one.outcome == "unsure"
    assert unsure(store) == (("ann@example.org", "2026-W47"),)
    assert unsure(store) == (), "it is told once"
    mailbox.says = lambda envelope: None
    assert sent(store, sender, mailbox) == []
    assert len(mailbox.letters) == 1


SENDING = """
import sys
from datetime import date
from pathlib import Path
from orrery.evidence.digest.email_message import Sender
from orrery.evidence.digest.send import send_due
from orrery.evidence.feed.store import Store

class Slow:
    def hand_over(self, letter):
        print("handing over", flush=True)
        sys.stdin.read()

with Store(Path(sys.argv[1])) as store:
    list(send_due(store, date(2026, 11, 20), Sender(address="papers@example.org"), Slow()))
"""


def test_kill_9_while_a_letter_is_handed_over_sends_no_second_one(store, sender, mailbox, ann):
    process = subprocess.Popen(
        [sys.executable, "-c", SENDING, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "handing over\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert store.rows("pragma integrity_check")[0][0] == "ok"
    assert unsure(store) == (("ann@example.org", "2026-W47"),)
    assert sent(store, sender, mailbox) == []
    assert mailbox.letters == []


class Crash(BaseException):
    """What nothing catches."""


@pytest.mark.parametrize(
    "point", ["before it is begun", "once it is begun", "while it is handed over", "once handed over"]
)
def test_wherever_it_stops_a_letter_is_never_sent_twice(store, sender, ann, monkeypatch, point):
    handed = []

    class Counting:
        def hand_over(self, letter):
            if point == "while it is handed over" and not handed:
                handed.append(letter)
                raise Crash
            handed.append(letter)
            return "sent", "250"

    def stop(*args, **more):
        raise Crash

    begin = sending._begin
    crashes = {
        "before it is begun": ("_begin", stop),
        "once it is begun": ("_begin", lambda *args: begin(*args) and stop()),
        "once handed over": ("_end", stop),
    }
    with monkeypatch.context() as patched:
        if point in crashes:
            patched.setattr(sending, *crashes[point])
        with pytest.raises(Crash):
            list(send_due(store, TODAY, sender, Counting()))
    list(send_due(store, TODAY, sender, Counting()))
    list(send_due(store, TODAY, sender, Counting()))
    assert len(handed) == (0 if point == "once it is begun" else 1)


def test_an_issue_that_was_refused_comes_again_whole(store, sender, mailbox, ann):
    mailbox.says = lambda envelope: "452 full"
    assert [s.num_papers for s in sent(store, sender, mailbox)] == [3]
    mailbox.says = lambda envelope: None
    next_week = TODAY + timedelta(days=3)
    assert [(s.outcome, s.num_papers) for s in sent(store, sender, mailbox, next_week)] == [("sent", 3)]


def test_a_paper_that_got_its_id_later_comes_once(store, sender, mailbox, ann):
    nameless = entry("title:0", "A paper of a page", "Without an id.")
    save_entries(store, [replace(nameless, id=title_id(nameless.title))], TODAY)
    assert [s.num_papers for s in sent(store, sender, mailbox)] == [4]
    save_entries(store, [replace(nameless, id="2611.00099")], TODAY)
    assert [s.outcome for s in sent(store, sender, mailbox, TODAY + timedelta(days=3))] == ["empty"]


def test_two_that_send_at_once_send_one(store, sender, mailbox, ann):
    class Nested:
        """While a letter is on its way, another process looks for what is due."""

        def hand_over(self, letter):
            assert sent(store, sender, mailbox) == []
            return "sent", "250"

    assert [s.outcome for s in send_due(store, TODAY, sender, Nested())] == ["sent"]
    assert mailbox.letters == []


def test_nothing_goes_over_an_untrusted_or_open_connection(store, sender, mailbox, monkeypatch):
    with pytest.raises(ScenarioError, match="certificate verify failed"), connected(Server.of(mailbox.address)):
        pass
    monkeypatch.setattr(Server, "is_here", False)
    monkeypatch.setattr("smtplib.SMTP.has_extn", lambda self, name: False)
    with pytest.raises(ScenarioError, match="offers no encryption"), connected(Server.of(mailbox.address)):
        pass


@pytest.mark.parametrize(
    "address", ["mail.example.org", "http://mail.example.org", "smtp://", "smtp://u:secret@h", "smtp://h:99999"]
)
def test_addresses_of_servers_are_checked_and_passwords_not_repeated(address):
    with pytest.raises(ScenarioError, match="write smtp://user@host:587") as error:
        Server.of(address)
    assert "secret" not in str(error.value)


def test_ports_and_users():
    assert (Server.of("smtp://ann%40x@h").port, Server.of("smtps://h").port) == (587, 465)
    assert Server.of("smtp://ann%40x@h").user == "ann@x"
    assert not Server.of("smtp://mail.example.org").is_here
    assert Server.of("smtp://localhost").is_here


@pytest.mark.parametrize(
    "address",
    [
        "ann",
        "ann@",
        "@b.c",
        "a b@c.d",
        "ann@localhost",
        "a@b.c\nBcc: x@y.z",
        "é@b.c",
        '"a b"@c.d',
        '"x@y.z, a"@c.d',
        "a@[127.0.0.1]",
        "a..b@c.d",
        "a@b..c",
        "a" * 65 + "@b.cd",
    ],
)
def test_addresses_are_checked(store, address):
    with pytest.raises(FeedError, match="no address for letters"):
        Subscriptions(store).ask(address, SubscriptionFilter(), "active")


def test_a_site_must_be_https():
    for site in ("http://papers.example.org", "http://localhost.example.org", "http://127.0.0.1.example.org"):
        with pytest.raises(ScenarioError, match="not https"):
            Sender(address="a@example.org", site=site)
    for site in ("https://x.example\r\nBcc: a@b.cd", "https://", "https://[", "https://x.example/?a=b", "https://x> "):
        with pytest.raises(ScenarioError, match="is no address of a site"):
            Sender(address="a@example.org", site=site)
    assert Sender(address="a@example.org", site="http://localhost:8025/").site == "http://localhost:8025"


def test_without_a_site_there_is_no_one_click(store, ann):
    letter = digest_letter(
        compose(store, TODAY, SubscriptionFilter()), ann, "2026-W47", Sender(address="a@example.org"), Tokens(store)
    )
    assert "List-Unsubscribe-Post" not in letter
    assert letter["List-Unsubscribe"] == "<mailto:a%40example.org?subject=unsubscribe>"


def test_tokens_are_for_one_purpose_one_library_and_some_days(store, tmp_path):
    now = [1.8e9]
    tokens = Tokens(store, lambda: now[0])
    confirm, leave = tokens.make("confirm", 7), tokens.make("leave", 7)
    assert (tokens.read("confirm", confirm), tokens.read("leave", leave)) == (7, 7)
    assert tokens.read("confirm", leave) is None
    assert tokens.read("leave", leave[:-2] + "AA") is None
    assert all(tokens.read("leave", odd) is None for odd in ("", "%", "é", "a" * 5000, "YS5iLmM"))
    now[0] += 9 * 86400
    assert tokens.read("confirm", confirm) is None
    assert tokens.read("leave", leave) == 7
    assert Tokens(store, time.time).read("leave", leave) == 7


def test_the_letter_that_asks_has_the_link(store, sender):
    bob = Subscriptions(store).ask("bob@example.org", SubscriptionFilter(), "pending")
    text = confirm_letter(bob, sender, Tokens(store)).get_content()
    assert "https://papers.example.org/confirm?token=" in text
