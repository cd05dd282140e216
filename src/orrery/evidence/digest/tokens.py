"""Tokens in the links of letters: a subscription and the link's permission, signed with the library's key.

    token = base64url(purpose . subscription . day . first 16 bytes of HMAC-SHA256)

Nobody without the library's file can make one, and one for leaving cannot confirm.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Literal

from orrery.evidence.digest.subscription import TABLES
from orrery.evidence.feed.store import Store

Purpose = Literal["confirm", "leave"]

CONFIRM_DAYS = 7
"""How long a link that confirms is good; a link to leave always is."""

LONGEST = 200
DAY_S = 86400.0


class Tokens:
    """Makes and reads the tokens of one library."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        store.extend("digest", TABLES)
        with store.transaction():
            store.execute("insert or ignore into secrets values ('tokens', ?)", (secrets.token_bytes(32),))
            (row,) = store.rows("select value from secrets where name = 'tokens'")
        self._key: bytes = row["value"]

    def make(self, purpose: Purpose, subscription: int) -> str:
        """A token for a link."""
        text = f"{purpose}.{subscription}.{int(self._clock() / DAY_S)}"
        return base64.urlsafe_b64encode(text.encode() + b"." + self._sign(text)).decode().rstrip("=")

    def read(self, purpose: Purpose, token: str) -> int | None:
        """The subscription that a token is about; None where it was not made here, for this, or is too old."""
        try:
            raw = base64.urlsafe_b64decode(token[:LONGEST].encode("ascii") + b"=" * (-len(token) % 4))
            text, signature = raw[:-17].decode("ascii"), raw[-16:]
            word, number, day = text.split(".")
        except (ValueError, binascii.Error):
            return None
        if len(token) > LONGEST or not hmac.compare_digest(signature, self._sign(text)) or word != purpose:
            return None
        is_late = self._clock() / DAY_S - int(day) > CONFIRM_DAYS + 1
        return None if is_late and purpose == "confirm" else int(number)

    def _sign(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), hashlib.sha256)[:16]
