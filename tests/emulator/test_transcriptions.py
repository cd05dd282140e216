"""Recordings: their header says how long they are, and words come when a model of speech would have heard them."""

import io
import struct
import time
import wave
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.emulator.recordings import audio_s
from orrery.emulator.refusal import RequestError
from orrery.emulator.transcriber import Transcriber
from orrery.emulator.transcriptions import form_of, segments, spoken

SPEED = 20.0
MODEL = "whisper-large-v3"


def wav(seconds, rate=1000, width=1, channels=1):
    """A silent recording."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(bytes(int(seconds * rate) * width * channels))
    return out.getvalue()


def flac(rate, samples, kind=0):
    """The head of a FLAC file: sizes of blocks and frames, then rate, channels and depth, samples, and a digest."""
    packed = rate << 44 | 1 << 41 | 15 << 36 | samples
    return b"fLaC" + bytes([kind, 0, 0, 34]) + bytes(10) + packed.to_bytes(8) + bytes(16)


@pytest.fixture(scope="module")
def listener(start):
    with start(speed_ratio=SPEED, speech_model=MODEL) as found:
        yield found


def sent(listener, content, **fields):
    form = {"model": MODEL} | fields
    return httpx.post(
        f"{listener.url}/v1/audio/transcriptions", data=form, files={"file": ("a.wav", content)}, timeout=30
    )


def test_lengths_by_hand():
    assert audio_s(wav(2.5)) == 2.5
    assert audio_s(wav(1.25, rate=16_000, width=2, channels=2)) == 1.25
    assert audio_s(flac(44_100, 441_000)) == 10.0
    assert audio_s(flac(44_100, 441_000, kind=0x80)) == 10.0  # the last block of metadata
    whole = wav(4.0)
    assert audio_s(whole[:1044]) == pytest.approx(1.044)  # a header that promises more than there is: 1 byte a frame


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF",
        b"ID3 an mp3",
        wav(0.0),
        flac(44_100, 0),
        flac(0, 5),
        flac(1000, 10_800_001),
        flac(44_100, 441_000, kind=4),
        flac(44_100, 441_000)[:20],
        struct.pack("<4sI4s", b"RIFF", 4, b"WAVE"),
    ],
)
def test_what_has_no_length_is_refused(content):
    with pytest.raises(RequestError) as refused:
        audio_s(content)
    assert refused.value.status == 400


def test_words_are_as_many_as_are_spoken_and_windows_share_them():
    """3.3 tokens a second: 7 s have 24, 70 s have 231, and the windows' words are those of the whole."""
    assert len(spoken(5, 0.0, 7.0).split()) == 24
    found = segments(5, 70.0)
    assert [(s["start"], s["end"]) for s in found] == [(0, 30), (30, 60), (60, 70)]
    assert " ".join(s["text"] for s in found).lower() == spoken(5, 0.0, 70.0).lower()
    assert len(spoken(5, 0.0, 70.0).split()) == 231


def test_a_client_gets_the_words_when_the_model_would_have_heard_them(listener):
    expected_s = orrery.estimate(model=MODEL, device="h100-sxm", audio_s=300).latency_s
    assert expected_s > 10.0
    recording = wav(300)
    with openai.OpenAI(base_url=f"{listener.url}/v1", api_key="none", max_retries=0) as client:
        assert MODEL in {m.id for m in client.models.list()}
        began_s = time.monotonic()
        answer = client.audio.transcriptions.create(model=MODEL, file=("talk.wav", recording))
        took_s = SPEED * (time.monotonic() - began_s)
        told = client.audio.transcriptions.create(model=MODEL, file=("a.wav", wav(65)), response_format="verbose_json")
        again = client.audio.transcriptions.create(model=MODEL, file=("b.wav", wav(65)), response_format="text")
    assert expected_s < took_s < expected_s + SPEED * 0.5
    assert len(answer.text.split()) == 990
    assert (told.duration, len(told.segments)) == (65.0, 3)
    assert again.strip() == told.text


def test_recordings_wait_for_each_other(listener):
    one_s = Transcriber.of(MODEL, "h100-sxm").answer(60.0).latency_s
    began_s = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(sent, listener, wav(60)) for _ in range(4)]
    assert {f.result().status_code for f in found} == {200}
    assert SPEED * (time.monotonic() - began_s) > 4 * one_s


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"model": "whisper-1"}, 404, "model"),
        ({"response_format": "srt"}, 400, "response_format"),
        ({"stream": "true"}, 400, "stream"),
        ({"beams": "5"}, 400, "beams"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(listener, fields, status, field):
    got = sent(listener, wav(1), **fields)
    assert (got.status_code, got.json()["error"]["param"]) == (status, field)


def test_forms_are_checked(listener):
    url = f"{listener.url}/v1/audio/transcriptions"
    got = httpx.post(url, data={"model": MODEL}, files={"other": b"x"})
    assert (got.status_code, got.json()["error"]["param"]) == (400, "other")
    assert httpx.post(url, json={"model": MODEL}).status_code == 415
    for kind, body in (
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=x", b"nothing"),
        ("multipart/form-data; boundary=x", b"--x\r\n"),
    ):
        got = httpx.post(url, content=body, headers={"content-type": kind})
        assert got.status_code == 400, body
    part = b'--x\r\nContent-Disposition: form-data; name="n%d"\r\n\r\n1\r\n'
    with pytest.raises(RequestError, match="More than 32 parts"):
        form_of(b"multipart/form-data; boundary=x", b"".join(part % k for k in range(40)) + b"--x--\r\n")
    with pytest.raises(RequestError, match="stands twice"):
        form_of(b"multipart/form-data; boundary=x", 2 * (part % 1) + b"--x--\r\n")
    for headers in ({}, {"connection": "close"}):
        large = {"file": ("a.wav", bytes(26_000_000))}
        got = httpx.post(url, data={"model": MODEL}, files=large, headers=headers, timeout=30)
        assert got.status_code == 413
        assert "larger than 25," in got.text


def test_models_are_checked():
    with pytest.raises(ScenarioError, match="transcribes nothing"):
        Transcriber.of("llama-3.1-8b", "h100-sxm")
    with pytest.raises(ScenarioError, match="does not fit"):
        Transcriber.of(MODEL, "groq-lpu-v1")
