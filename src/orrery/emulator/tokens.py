"""The emulator's tokeniser: words as they stand, long ones cut into pieces of at most six bytes.

Real tokenisers make about four tokens of three English words; so does this one, because words of more than five
letters become two pieces. A token's number is its bytes behind a leading 1, so that numbers turn back into text with
no table, and stay below 2^53, which every JSON reader holds exactly.
"""

import re

MAX_BYTES = 6
"""Largest number of bytes of one token."""

PIECE = re.compile(
    rb" [A-Za-z]{1,5}|[A-Za-z]{1,6}|[0-9]{1,3}|(?:[\xc2-\xdf][\x80-\xbf]){1,3}|(?:[\xe0-\xef][\x80-\xbf]{2}){1,2}"
    rb"|[\xf0-\xf4][\x80-\xbf]{3}|[ \t\r\n]{1,4}(?![A-Za-z])|[!-/:-@\[-`{-~]{1,3}|[\x00-\xff]"
)


def pieces(text: str) -> list[bytes]:
    """The tokens of a text, as their bytes."""
    return PIECE.findall(text.encode(errors="replace"))


def number_of(piece: bytes) -> int:
    """A token's number."""
    return int.from_bytes(b"\x01" + piece)


def piece_of(number: int) -> bytes:
    """A token's bytes; ValueError where the number is none of a token."""
    length, rest = divmod(number.bit_length() - 1, 8)
    if number < 1 or rest or not 1 <= length <= MAX_BYTES:
        raise ValueError(f"{number} is the number of no token")
    return number.to_bytes(length + 1)[1:]


def text_of(numbers: list[int]) -> str:
    """The text that tokens stand for."""
    return b"".join(map(piece_of, numbers)).decode(errors="replace")
