"""A library with papers of this week, and a mail server that keeps, refuses or loses what it gets."""

import ssl
from datetime import date, timedelta

import pytest
import trustme
from aiosmtpd import smtp
from aiosmtpd.controller import Controller

from orrery.evidence.digest.email_message import Sender
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store

TODAY = date(2026, 11, 20)

PAPERS = (
    (
        "2611.00001",
        "Paging the key-value cache of LLM serving to drives",
        "We serve large language models with a KV cache that moves to NVMe drives. TTFT falls by 2.1x over vLLM.",
    ),
    (
        "2611.00002",
        "Pipeline schedules without bubbles for training",
        "Training of large transformers on many GPUs with pipeline parallelism; throughput improves by 17% over 1F1B.",
    ),
    (
        "2611.00003",
        "<script>alert(1)</script> & other titles",
        "An abstract with <b>markup</b> & ampersands about quantization to 4 bits of weights and activations.",
    ),
)


def entry(id, title, abstract, days_ago=1, **more):
    return Entry(
        id=id,
        title=title,
        abstract=abstract,
        source="test",
        num_authors=3,
        url=f"https://arxiv.org/abs/{id}",
        published=TODAY - timedelta(days=days_ago),
        **more,
    )


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "library.sqlite") as store:
        save_entries(store, [entry(*paper) for paper in PAPERS], TODAY)
        yield store


@pytest.fixture
def sender():
    return Sender(address="papers@example.org", site="https://papers.example.org/")


class Postbox:
    """Keeps letters; ``says`` is asked before each: a reply other than None stands in for 250."""

    def __init__(self):
        self.letters, self.says = [], lambda envelope: None

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        reply = self.says(envelope)
        if reply == "hang up":
            self.letters.append(envelope)
            server.transport.abort()
            return "250 nobody hears this"
        if reply:
            return reply
        self.letters.append(envelope)
        return "250 kept"


class Tls(Controller):
    """STARTTLS with a certificate of its own."""

    def __init__(self, handler, context):
        self.context = context
        super().__init__(handler, hostname="127.0.0.1", port=0)

    def factory(self):
        return smtp.SMTP(self.handler, tls_context=self.context, require_starttls=True)

    def _trigger_server(self):
        """The library connects to the port that was asked for, which is none."""
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def mailbox(authority, tmp_path):
    """A running server: its letters, its address, and the file of its authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    box = Postbox()
    controller = Tls(box, context)
    controller.start()
    box.address = f"smtp://127.0.0.1:{controller.port}"
    box.authority = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(box.authority))
    yield box
    controller.stop()
