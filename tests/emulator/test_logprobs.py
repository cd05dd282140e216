"""Log probabilities of tokens: normalised, sorted, calibrated, the same again, and in the shape that clients read."""

import asyncio
import json
from math import exp, log

import openai
import pytest

from orrery.emulator.logprobs import MAX_ENTRIES, MAX_RANK, Logprobs, place_of
from orrery.emulator.refusal import RequestError
from orrery.emulator.words import Answer, Written

HELLO = [{"role": "user", "content": "Say something about clocks."}]


@pytest.fixture(scope="module")
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


def chat(client, **more):
    return client.chat.completions.create(
        model="llama", messages=HELLO, **{"max_tokens": 40, "logprobs": True, "top_logprobs": 5, "seed": 4, **more}
    )


def test_chances_of_a_place_add_up_and_fall_by_halves():
    """By hand: p and (1 - p) (1/2 + 1/4 + …) are one; of twenty ranks behind the first, all but 2^-20 of it."""
    for index in range(200):
        place = place_of(7, index, False)
        first = exp(place.logprob(1))
        rest = [exp(place.logprob(rank)) for rank in range(2, 22)]
        assert 1 / 3 <= first < 1
        assert sum(rest) == pytest.approx((1 - first) * (1 - 2**-20))
        assert rest[0] == pytest.approx((1 - first) / 2)
        assert rest[1] == pytest.approx(rest[0] / 2)
        assert first >= rest[0] * (1 - 1e-12)
        assert 1 <= place.rank <= MAX_RANK
        assert place_of(7, index, True).rank == 1


def test_what_is_said_is_as_likely_as_it_claims():
    """Drawn p have the mean 1 - 2/3 x 1/4 = 5/6, and just that share of tokens is the likeliest at its place."""
    places = [place_of(key, index, False) for key in range(40) for index in range(500)]
    claimed = sum(exp(p.logprob(1)) for p in places) / len(places)
    held = sum(p.rank == 1 for p in places) / len(places)
    second = sum(p.rank == 2 for p in places) / len(places)
    assert claimed == pytest.approx(5 / 6, abs=0.005)
    assert held == pytest.approx(claimed, abs=0.01)
    assert second == pytest.approx(1 / 12, abs=0.01)


def test_a_chat_tells_them_whole_and_streamed(client):
    (choice,) = (answer := chat(client)).choices
    found = choice.logprobs.content
    assert len(found) == answer.usage.completion_tokens == 40
    assert "".join(t.token for t in found) == choice.message.content
    for token in found:
        tops = [t.logprob for t in token.top_logprobs]
        assert len(tops) == len({t.token for t in token.top_logprobs}) == 5
        assert tops == sorted(tops, reverse=True)
        assert sum(map(exp, tops)) <= 1 + 1e-9
        assert (token.token, token.logprob) in [(t.token, t.logprob) for t in token.top_logprobs]
        assert bytes(token.bytes).decode() == token.token
    streamed = [c.choices[0] for c in chat(client, stream=True)]
    pieces = [c.logprobs.content for c in streamed if c.logprobs]
    assert all(len(p) == 1 for p in pieces)
    assert [p[0] for p in pieces] == found
    assert chat(client).choices[0].logprobs == choice.logprobs
    assert chat(client, seed=5).choices[0].logprobs != choice.logprobs


def test_with_temperature_0_the_likeliest_is_said(client):
    for token in chat(client, temperature=0, seed=None).choices[0].logprobs.content:
        assert token.logprob == token.top_logprobs[0].logprob >= log(1 / 3)
    plain = chat(client, top_logprobs=None).choices[0].logprobs.content
    assert [t.top_logprobs for t in plain] == [[]] * 40
    assert chat(client, logprobs=False, top_logprobs=None).choices[0].logprobs is None


def test_a_completion_has_columns(client):
    def complete(**more):
        return client.completions.create(model="llama", prompt="a b", max_tokens=30, seed=1, logprobs=2, **more)

    (choice,) = complete().choices
    found = choice.logprobs
    assert len(found.tokens) == len(found.token_logprobs) == len(found.top_logprobs) == len(found.text_offset) == 30
    for at, token, own, tops in zip(
        found.text_offset, found.tokens, found.token_logprobs, found.top_logprobs, strict=True
    ):
        assert choice.text[at:].startswith(token)
        assert tops[token] == own
        assert len(tops) == 2 + (own < min(tops.values()) + 1e-12 and len(tops) == 3)
    assert {len(tops) for tops in found.top_logprobs} == {2, 3}, "the one said is added where it is none of the two"
    streamed = [c.choices[0].logprobs for c in complete(stream=True)]
    assert [x for c in streamed for x in c.text_offset] == found.text_offset
    assert [x for c in streamed for x in c.top_logprobs] == found.top_logprobs


def test_documents_and_calls_have_them_too(client):
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    (choice,) = chat(client, response_format={"type": "json_schema", "json_schema": {"schema": schema}}).choices
    assert "".join(t.token for t in choice.logprobs.content) == choice.message.content
    tools = [{"type": "function", "function": {"name": "find", "parameters": schema}}]
    (choice,) = chat(client, tools=tools, tool_choice="required").choices
    assert "".join(t.token for t in choice.logprobs.content) == choice.message.tool_calls[0].function.arguments


def test_tokens_that_a_stop_cuts_say_what_is_left():
    answer = Answer(5, 50, "length")
    text = answer.text(0, 50)
    answer.stop_at([text[60:66]], 0, False)
    found = json.loads(Logprobs(kind="chat", top=1).of(answer, 0, answer.num_tokens))["content"]
    assert "".join(t["token"] for t in found) == text[: text.index(text[60:66])]
    assert len(found) == answer.num_tokens


def test_pieces_are_those_of_the_whole():
    for answer in (Answer(9, 700, "length"), Written("{" + '"a":1,' * 300 + "}", 600)):
        for kind in ("chat", "completion"):
            wish = Logprobs(kind=kind, top=3)
            whole = json.loads(bytes(asyncio.run(wish.whole(answer))))
            assert whole == json.loads(wish.of(answer, 0, answer.num_tokens))


@pytest.mark.parametrize(
    ("param", "more"),
    [
        ("logprobs", {"logprobs": 3}),
        ("top_logprobs", {"logprobs": None}),
        ("top_logprobs", {"top_logprobs": 21}),
        ("top_logprobs", {"top_logprobs": -1}),
        ("logprobs", {"logprobs": "yes"}),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(client, param, more):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, **more)
    assert caught.value.param == param
    with pytest.raises(openai.BadRequestError, match="0 to 20"):
        client.completions.create(model="llama", prompt="a", logprobs=21)


def test_an_answer_may_not_have_too_many():
    Logprobs(kind="chat", top=3).check(MAX_ENTRIES // 4)
    with pytest.raises(RequestError, match="stream") as caught:
        Logprobs(kind="chat", top=3).check(MAX_ENTRIES // 4 + 1)
    assert caught.value.param == "top_logprobs"
