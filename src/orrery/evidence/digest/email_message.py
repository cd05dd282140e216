"""An issue as a letter: plain text and HTML, and the headers that let a mail program end it with one click [rfc-8058].

A letter to others carries ``List-Unsubscribe`` with a web address and ``List-Unsubscribe-Post``; without a site there
is only an address to write to.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime
from hashlib import sha256
from urllib.parse import quote, urlsplit

from orrery.base.errors import ScenarioError
from orrery.evidence.digest.issue import DigestIssue
from orrery.evidence.digest.render import as_html, as_text
from orrery.evidence.digest.subscription import Subscription, checked_address
from orrery.evidence.digest.tokens import Tokens

SEVEN_BIT = default.clone(cte_type="7bit")
"""Every mail server takes such a letter as it is, so that a signature on it holds."""

_SITE = re.compile(r"https?://[A-Za-z0-9._~:/\[\]@!$&'()*+;=%-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The address that writes, and the site of the pages behind the links; no site where nobody else is written to."""

    address: str
    site: str = ""  # https://papers.example.org, where ``orrery papers serve`` is reached

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", checked_address(self.address))
        object.__setattr__(self, "site", _checked_site(self.site.rstrip("/")) if self.site else "")

    @property
    def domain(self) -> str:
        """Domain of the address."""
        return self.address.rpartition("@")[2]


def _checked_site(site: str) -> str:
    """An address to which the paths of the pages can be added, and that can stand in a header as it is."""
    try:
        parts = urlsplit(site)
        is_web = bool(parts.hostname) and _SITE.fullmatch(site) is not None
    except ValueError:
        parts, is_web = urlsplit(""), False
    if not is_web:
        raise ScenarioError(f"site: {site!r} is no address of a site; write one such as https://papers.example.org.")
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ScenarioError(f"site: {site!r} is not https; mail programs follow no other link to unsubscribe.")
    return site


def digest_letter(issue: DigestIssue, to: Subscription, period: str, sender: Sender, tokens: Tokens) -> EmailMessage:
    """The letter of one issue. Its id depends on reader and period alone: a mail program would know a copy by it."""
    links: dict[str, str] = {}
    letter = _letter(to.address, issue.title, sender, f"digest|{to.id}|{period}")
    letter["List-Id"] = f"New papers on AI compute <papers.orrery.{sender.domain}>"
    mailto = f"mailto:{quote(sender.address)}?subject=unsubscribe"
    if sender.site:
        leave = f"{sender.site}/unsubscribe?token={tokens.make('leave', to.id)}"
        letter["List-Unsubscribe"] = f"<{leave}>, <{mailto}>"
        letter["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        links["Unsubscribe"] = leave
    else:
        letter["List-Unsubscribe"] = f"<{mailto}>"
    letter.set_content(as_text(issue, links))
    letter.add_alternative(as_html(issue, links), subtype="html")
    return letter


def confirm_letter(to: Subscription, sender: Sender, tokens: Tokens) -> EmailMessage:
    """The letter that asks whether the owner of an address wants the digest; without an answer nothing follows."""
    link = f"{sender.site}/confirm?token={tokens.make('confirm', to.id)}"
    letter = _letter(to.address, "Please confirm: new papers on AI compute", sender, f"confirm|{to.id}|{link}")
    letter.set_content(
        f"A digest of new papers to {to.address} was requested.\n\n"
        f"If it was you, open this link within a week:\n\n{link}\n\n"
        "If it was not, do nothing: no further letter will come.\n"
    )
    return letter


def known_letter(to: Subscription, sender: Sender, tokens: Tokens) -> EmailMessage:
    """The letter to somebody who asks again for what they get already."""
    link = f"{sender.site}/unsubscribe?token={tokens.make('leave', to.id)}"
    letter = _letter(to.address, "You get this already: new papers on AI compute", sender, f"known|{to.id}|{link}")
    letter.set_content(
        f"A digest of new papers to {to.address} was requested.\n\n"
        f"It is, every {to.selection.frequency}, and nothing has changed. To end it, open this link:\n\n{link}\n\n"
        "To get other papers or at other times, end it and ask again.\n"
    )
    return letter


def _letter(to: str, subject: str, sender: Sender, unique: str) -> EmailMessage:
    letter = EmailMessage(policy=SEVEN_BIT)
    letter["Subject"] = subject
    letter["From"] = Address(display_name="orrery", addr_spec=sender.address)
    letter["To"] = to
    letter["Date"] = format_datetime(datetime.now(UTC))
    letter["Message-ID"] = f"<{sha256(unique.encode()).hexdigest()[:32]}@{sender.domain}>"
    letter["Auto-Submitted"] = "auto-generated"
    return letter
