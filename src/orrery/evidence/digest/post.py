"""The way to a mail server: encrypted, except to this machine itself."""

import os
import smtplib
import ssl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from orrery.base.errors import ScenarioError

PATIENCE_S = 30.0
LETTER_PATIENCE_S = 600.0
"""For the answer to a whole letter: whoever hangs up earlier may have sent it [rfc-5321, 4.5.3.2.6]."""

LETTER = SMTP.clone(cte_type="7bit", max_line_length=998)
"""Long links stand in one piece: folded, they would be encoded, and mail programs would not find them."""

PASSWORD = "ORRERY_SMTP_PASSWORD"
PORTS = {"smtp": 587, "smtps": 465}

Handed = Literal["sent", "refused", "unsure"]
"""``unsure``: the connection broke after the letter was on its way, so the server may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A mail server, from an address such as smtp://user@mail.example.org:587 (STARTTLS) or smtps://… (TLS at once)."""

    host: str
    port: int
    user: str
    is_tls_at_once: bool
    certificates: Path | None = None  # of the authorities to trust; the system's where none are given

    @staticmethod
    def of(address: str, certificates: Path | None = None) -> "Server":
        """The server of an address; the password comes from the environment, never from a command line."""
        parts = urlsplit(address)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in PORTS or not parts.hostname or port == -1 or parts.password:
            raise ScenarioError(
                f"smtp: {address.partition('@')[2] or address!r} is no mail server; write smtp://user@host:587 or "
                f"smtps://user@host, with the password in {PASSWORD}."
            )
        return Server(
            host=parts.hostname,
            port=port or PORTS[parts.scheme],
            user=unquote(parts.username or ""),
            is_tls_at_once=parts.scheme == "smtps",
            certificates=certificates,
        )

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, where nobody listens in between."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@contextmanager
def connected(server: Server) -> Generator["Connection"]:
    """A connection for several letters, signed in. Raises where the server cannot be reached or takes no encryption."""
    client: smtplib.SMTP | None = None
    try:
        context = ssl.create_default_context(cafile=server.certificates)
        if server.is_tls_at_once:
            client = smtplib.SMTP_SSL(server.host, server.port, timeout=PATIENCE_S, context=context)
        else:
            client = smtplib.SMTP(server.host, server.port, timeout=PATIENCE_S)
            _encrypt(client, server, context)
        if server.user:
            client.login(server.user, os.environ.get(PASSWORD, ""))
    except (smtplib.SMTPException, OSError, UnicodeError) as error:
        if client:
            client.close()
        raise ScenarioError(f"smtp: {server.host}:{server.port} cannot be used: {error}.") from None
    try:
        yield Connection(client)
    finally:
        with suppress(smtplib.SMTPException, OSError):
            client.quit()
        client.close()


def _encrypt(client: smtplib.SMTP, server: Server, context: ssl.SSLContext) -> None:
    """STARTTLS; only a server on this machine may do without."""
    client.ehlo()
    if client.has_extn("starttls"):
        client.starttls(context=context)
        client.ehlo()
    elif not server.is_here:
        client.close()
        raise ScenarioError(f"smtp: {server.host} offers no encryption, so nothing is sent through it.")


class Connection:
    """Hands over letters one by one, and knows which of them the server may have."""

    def __init__(self, client: smtplib.SMTP) -> None:
        self._client = client

    def hand_over(self, letter: EmailMessage) -> tuple[Handed, str]:
        """Hand a letter to the server: the outcome, and the server's reply."""
        content = letter.as_bytes(policy=LETTER)
        self._wait(PATIENCE_S)
        try:
            for code, text in (
                self._client.mail(letter["From"].addresses[0].addr_spec),
                self._client.rcpt(letter["To"].addresses[0].addr_spec),
            ):
                if code not in (250, 251):
                    self._client.rset()
                    return "refused", f"{code} {text.decode(errors='replace')}"
        except (smtplib.SMTPException, OSError) as error:
            return "refused", str(error)
        try:
            self._wait(LETTER_PATIENCE_S)
            code, text = self._client.data(content)
        except smtplib.SMTPDataError as error:  # it refused before it took any of the letter
            with suppress(smtplib.SMTPException, OSError):
                self._client.rset()
            return "refused", str(error)
        except (smtplib.SMTPException, OSError) as error:
            return "unsure", str(error)
        return ("sent" if code == 250 else "refused"), f"{code} {text.decode(errors='replace')}"

    def _wait(self, patience_s: float) -> None:
        """For answers from now on."""
        if self._client.sock:
            self._client.sock.settimeout(patience_s)
