"""The client that most programs use, unmodified."""

import openai
import pytest


@pytest.fixture
def client(fast):
    with openai.OpenAI(base_url=f"{fast.url}/v1", api_key="any", max_retries=0) as found:
        yield found


HELLO = [{"role": "user", "content": "Say something about clocks."}]


def test_a_whole_chat_answer(client):
    answer = client.chat.completions.create(model="llama", messages=HELLO, max_tokens=12)
    (choice,) = answer.choices
    assert len(choice.message.content.split()) == 12
    assert (choice.finish_reason, choice.message.role, answer.model) == ("length", "assistant", "llama")
    assert answer.usage.completion_tokens == 12
    assert answer.usage.total_tokens == 12 + answer.usage.prompt_tokens


def test_a_streamed_chat_answer_has_a_chunk_a_token_and_its_usage(client):
    stream = client.chat.completions.create(
        model="llama", messages=HELLO, max_completion_tokens=9, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [c.choices[0].delta.content for c in chunks if c.choices]
    assert texts[0] == ""
    assert len(texts) == 10
    assert len("".join(texts).split()) == 9
    assert [c.choices[0].finish_reason for c in chunks if c.choices] == [None] * 9 + ["length"]
    assert chunks[-1].usage.completion_tokens == 9


def test_several_answers_to_several_prompts(client):
    answer = client.completions.create(model="other", prompt=["one", "two words"], n=3, max_tokens=4)
    assert [c.index for c in answer.choices] == list(range(6))
    assert len({c.text for c in answer.choices}) == 6
    assert answer.usage.prompt_tokens == 3
    assert answer.usage.completion_tokens == 24


def test_prompts_as_tokens(client):
    answer = client.completions.create(model="llama", prompt=[[5, 6, 7], [8, 9]], max_tokens=2)
    assert answer.usage.prompt_tokens == 5
    assert client.completions.create(model="llama", prompt=[5, 6, 7]).usage.completion_tokens == 16


def test_a_seed_says_the_same_again(client):
    def describe(**more):
        return client.completions.create(model="llama", prompt="a b c", max_tokens=20, **more).choices[0].text

    assert describe(seed=1) == describe(seed=1) != describe(seed=2)
    assert describe(temperature=0) == describe(temperature=0)
    assert describe() != describe()


def test_an_answer_stops_at_a_string_and_leaves_it_out(client):
    long = client.completions.create(model="llama", prompt="a", max_tokens=400, seed=3).choices[0].text
    stop = " ".join(long.split()[30:32])
    for stream in (False, True):
        found = client.completions.create(model="llama", prompt="a", max_tokens=400, seed=3, stop=[stop], stream=stream)
        choices = [c.choices[0] for c in found] if stream else found.choices
        assert "".join(c.text for c in choices) == long[: long.index(stop)]
        assert choices[-1].finish_reason == "stop"


def test_models_are_listed(client):
    found = client.models.list().data
    assert [m.id for m in found] == ["llama", "other"]
    assert found[0].max_model_len == 8192


def test_errors_are_the_clients_own(client):
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.chat.completions.create(model="gpt", messages=HELLO)
    with pytest.raises(openai.BadRequestError, match="maximum context length is 8,192") as caught:
        client.chat.completions.create(model="llama", messages=HELLO, max_tokens=8192)
    assert caught.value.param == "max_tokens"
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        client.completions.create(model="llama", prompt="word " * 9000, max_tokens=1)
    with pytest.raises(openai.BadRequestError, match="top_logprobs"):
        client.chat.completions.create(model="llama", messages=HELLO, top_logprobs=2)
