"""How long a recording is, from the first bytes of its file: WAV and FLAC, whose headers say so."""

import io
import wave

from orrery.emulator.refusal import RequestError

FIELD = "file"
MAX_AUDIO_S = 3 * 3600.0
"""Longest recording."""

STREAMINFO_BYTES = 34
FLAC_MARK = b"fLaC"


def audio_s(content: bytes) -> float:
    """Seconds of a recording; RequestError where it is no WAV or FLAC file, is empty, or longer than three hours."""
    found = _flac_s(content) if content.startswith(FLAC_MARK) else _wav_s(content)
    if not 0.0 < found <= MAX_AUDIO_S:
        raise RequestError(400, f"file: {found:g} s of sound; at most {MAX_AUDIO_S:g} s, and not none.", FIELD)
    return found


def _wav_s(content: bytes) -> float:
    """Frames that are really there, over their rate."""
    try:
        with wave.open(io.BytesIO(content)) as found:
            frame_bytes = found.getsampwidth() * found.getnchannels()
            return min(found.getnframes(), len(content) // frame_bytes) / found.getframerate()
    except (wave.Error, EOFError, ZeroDivisionError):
        raise RequestError(400, "file: neither WAV (PCM) nor FLAC; convert the recording.", FIELD) from None


def _flac_s(content: bytes) -> float:
    """Samples over their rate, from the block STREAMINFO (RFC 9639, section 8.2): 20 bits of rate, 36 of samples."""
    info = content[8 : 8 + STREAMINFO_BYTES]
    if len(info) < STREAMINFO_BYTES or content[4] & 0x7F:
        raise RequestError(400, "file: a FLAC file without STREAMINFO.", FIELD)
    packed = int.from_bytes(info[10:18])
    rate, samples = packed >> 44, packed & (1 << 36) - 1
    if not rate or not samples:
        raise RequestError(400, "file: a FLAC file that does not say how long it is.", FIELD)
    return samples / rate
