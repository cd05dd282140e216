"""Vectors: of length one, the same for the same input, and as late as the simulator says."""

from base64 import b64decode

import httpx
import numpy as np
import openai
import pytest


@pytest.fixture
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


def test_equal_inputs_have_equal_vectors_of_length_one(client):
    answer = client.embeddings.create(model="llama", input=["one", "two words", "one"])
    vectors = np.array([d.embedding for d in answer.data])
    assert vectors.shape == (3, 4096), "the model's width"
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert (vectors[0] == vectors[2]).all()
    assert abs(vectors[0] @ vectors[1]) < 0.1
    assert [d.index for d in answer.data] == [0, 1, 2]
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == 1 + 2 + 1


def test_both_encodings_say_the_same(client):
    as_numbers = client.embeddings.create(model="llama", input=[1, 2, 3], encoding_format="float").data[0].embedding
    packed = client.embeddings.create(model="llama", input=[[1, 2, 3]], encoding_format="base64").data[0].embedding
    found = np.frombuffer(b64decode(packed), dtype="<f4")
    assert found == pytest.approx(as_numbers, abs=1e-7)


def test_a_shorter_vector_is_the_beginning_of_the_long_one(client):
    long = np.array(client.embeddings.create(model="llama", input="a b").data[0].embedding)
    short = np.array(client.embeddings.create(model="llama", input="a b", dimensions=64).data[0].embedding)
    assert short == pytest.approx(long[:64] / np.linalg.norm(long[:64]), abs=1e-6)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", 1]}, "input"),
        ({}, "input"),
        ({"input": "a", "dimensions": 5000}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": ["a"] * 1000}, "input"),
        ({"input": [1] * 9000}, "input"),
    ],
)
def test_what_cannot_be(fast, body, param):
    response = httpx.post(f"{fast.url}/v1/embeddings", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_a_long_input_takes_the_time_of_its_prefill(start):
    """8,000 tokens of an 8B model are 16e9 x 8e3 = 1.3e14 operations: 0.13 s on an H100's 990 TFLOP/s at most."""
    with start() as found:
        for prompt, least_s, most_s in (([7] * 8000, 0.13, 0.5), ([9] * 8, 0.0, 0.05)):
            httpx.post(f"{found.url}/v1/embeddings", json={"input": prompt, "dimensions": 8})
            seen = found.pace.meters.of(0)["time_to_first_token_seconds"]
            assert least_s < seen.total < most_s
            seen.total = 0.0
