"""Pictures: real ones, as late as a diffusion pipeline is, one request after the other."""

import io
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest
from PIL import Image

import orrery
from orrery.base.errors import ScenarioError
from orrery.emulator.image_pipeline import ImagePipeline
from orrery.emulator.images import png

SPEED = 20.0


@pytest.fixture(scope="module")
def painter(start):
    with start(speed_ratio=SPEED, image_model="flux.1-dev") as found:
        yield found


@pytest.mark.parametrize(("height", "width"), [(16, 16), (17, 33), (1024, 768)])
def test_a_picture_has_its_size_and_two_colours(height, width):
    with Image.open(io.BytesIO(png(height, width, np.random.default_rng(1)))) as found:
        found.load()
        assert found.size == (width, height)
        assert len(found.convert("RGB").getcolors()) <= 2


def test_a_client_gets_a_picture_when_the_pipeline_would_have_made_it(painter):
    expected_s = orrery.estimate(
        model="flux.1-dev", device="h100-sxm", height=512, width=512, batch=2
    ).generated.latency_s
    with openai.OpenAI(base_url=f"{painter.url}/v1", api_key="none", max_retries=0) as client:
        assert "flux.1-dev" in {m.id for m in client.models.list()}
        began_s = time.monotonic()
        answer = client.images.generate(model="flux.1-dev", prompt="a cat", n=2, size="512x512")
        took_s = SPEED * (time.monotonic() - began_s)
    assert expected_s < took_s < expected_s + SPEED * 0.5
    with Image.open(io.BytesIO(b64decode(answer.data[0].b64_json))) as found:
        assert (found.size, found.format) == ((512, 512), "PNG")
    assert answer.data[0].b64_json != answer.data[1].b64_json


def test_requests_wait_for_each_other(painter):
    body = {"prompt": "a", "size": "256x256", "num_inference_steps": 4}
    one_s = ImagePipeline.of("flux.1-dev", "h100-sxm").latency_s(256, 256, 1, 4)
    began_s = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        sent = [
            pool.submit(httpx.post, f"{painter.url}/v1/images/generations", json=body, timeout=30) for _ in range(4)
        ]
    assert {s.result().status_code for s in sent} == {200}
    assert SPEED * (time.monotonic() - began_s) > 4 * one_s


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"size": "big"}, "size"),
        ({"size": "9000x16"}, "size"),
        ({"size": "100x100"}, "size"),
        ({"n": 11}, "n"),
        ({"prompt": ""}, "prompt"),
        ({"response_format": "url"}, "response_format"),
        ({"num_inference_steps": 0}, "num_inference_steps"),
    ],
)
def test_what_cannot_be_made_is_refused(painter, more, field):
    got = httpx.post(f"{painter.url}/v1/images/generations", json={"prompt": "a"} | more)
    assert (got.status_code, got.json()["error"]["param"]) == (400, field)


def test_pipelines_are_checked(painter):
    got = httpx.post(f"{painter.url}/v1/images/generations", json={"prompt": "a", "model": "llama"})
    assert got.status_code == 404
    for model, device, words in (
        ("llama-3.1-8b", "h100-sxm", "makes no pictures"),
        ("wan2.1-t2v-14b", "h100-sxm", "makes videos"),
        ("flux.1-dev", "l4", "does not fit"),
    ):
        with pytest.raises(ScenarioError, match=words):
            ImagePipeline.of(model, device)
