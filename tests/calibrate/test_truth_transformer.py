"""The reference model is a real transformer: it says what a slow one of loops in double precision says."""

import math

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.calibrate.truth.transformer import transformer

CONFIG = {
    "model_type": "llama",
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
MODEL = transformer(CONFIG, seed=3)
PROMPT = np.random.default_rng(0).integers(50, size=13)


def slow_logits(model, tokens):
    """The last token's logits: one token, one head, one number after the other; no cache, no matrix product."""
    a = model.attention
    streams = [[float(v) for v in model.embedding[t]] for t in tokens]
    for layer in model.layers:
        normed = [slow_norm(s, layer.attention_gain) for s in streams]
        qkv = [times(x, layer.qkv) for x in normed]
        for t in reversed(range(len(tokens))):
            mixed = []
            for head in range(a.num_heads):
                kv = a.num_heads + head // (a.num_heads // a.num_kv_heads)
                query = slow_rotate(piece(qkv[t], head, a.head_size), t)
                scores = [
                    sum(q * k for q, k in zip(query, slow_rotate(piece(qkv[p], kv, a.head_size), p), strict=True))
                    / math.sqrt(a.head_size)
                    for p in range(t + 1)
                ]
                weights = [math.exp(s) for s in scores]
                values = [piece(qkv[p], kv + a.num_kv_heads, a.head_size) for p in range(t + 1)]
                mixed += [
                    sum(w * v[i] for w, v in zip(weights, values, strict=True)) / sum(weights)
                    for i in range(a.head_size)
                ]
            streams[t] = [s + o for s, o in zip(streams[t], times(mixed, layer.out), strict=True)]
        for t, s in enumerate(streams):
            both = times(slow_norm(s, layer.feed_gain), layer.gate_up)
            half = len(both) // 2
            fed = [g / (1 + math.exp(-g)) * u for g, u in zip(both[:half], both[half:], strict=True)]
            streams[t] = [x + y for x, y in zip(s, times(fed, layer.down), strict=True)]
    return times(slow_norm(streams[-1], model.final_gain), model.head)


def piece(row, which, size):
    return row[which * size : (which + 1) * size]


def times(x, weight):
    return [sum(a * float(w) for a, w in zip(x, column, strict=True)) for column in weight.T]


def slow_norm(x, gain):
    scale = math.sqrt(sum(v * v for v in x) / len(x) + 1e-6)
    return [v / scale * float(g) for v, g in zip(x, gain, strict=True)]


def slow_rotate(x, position):
    half = len(x) // 2
    turned = [complex(x[i], x[i + half]) * np.exp(1j * position / 10_000 ** (i / half)) for i in range(half)]
    return [v.real for v in turned] + [v.imag for v in turned]


def prefilled(tokens, capacity=32):
    cache = MODEL.new_cache(capacity)
    return cache, MODEL.logits([(cache, np.asarray(tokens))])[0]


def test_logits_are_those_of_a_slow_model_of_loops():
    for count in (1, 2, 13):
        np.testing.assert_allclose(prefilled(PROMPT[:count])[1], slow_logits(MODEL, PROMPT[:count]), atol=2e-5)


def test_a_decode_behind_a_prompt_is_the_prompt_with_one_more_token():
    cache, _ = prefilled(PROMPT[:-1])
    decoded = MODEL.logits([(cache, PROMPT[-1:])])[0]
    np.testing.assert_allclose(decoded, prefilled(PROMPT)[1], atol=2e-5)
    assert cache.num_tokens == len(PROMPT)


def test_a_prompt_in_chunks_is_the_whole_prompt():
    cache, _ = prefilled(PROMPT[:4])
    MODEL.logits([(cache, PROMPT[4:9])])
    np.testing.assert_allclose(MODEL.logits([(cache, PROMPT[9:])])[0], prefilled(PROMPT)[1], atol=2e-5)


def test_nobody_sees_a_later_token():
    other = PROMPT.copy()
    other[8:] = (other[8:] + 7) % 50
    one, two = prefilled(PROMPT)[0], prefilled(other)[0]
    for kind in ("keys", "values"):
        a, b = getattr(one, kind), getattr(two, kind)
        np.testing.assert_allclose(a[:, :, :8], b[:, :, :8], atol=1e-6)
        assert not np.allclose(a[:, :, 8], b[:, :, 8])


def test_sequences_of_a_step_do_not_see_each_other():
    prompts = (PROMPT[:5], PROMPT[3:4], PROMPT[2:11])
    together = MODEL.logits([(MODEL.new_cache(16), p) for p in prompts])
    for row, prompt in zip(together, prompts, strict=True):
        np.testing.assert_allclose(row, prefilled(prompt)[1], atol=2e-5)


def test_a_step_takes_the_likeliest_token():
    caches = [MODEL.new_cache(16) for _ in range(2)]
    tokens = MODEL.step([(cache, PROMPT[i : i + 4]) for i, cache in enumerate(caches)])
    assert tokens.tolist() == [int(np.argmax(slow_logits(MODEL, PROMPT[i : i + 4]))) for i in range(2)]


def test_weights_are_those_that_orrery_counts():
    block = MODEL.model.blocks[0]
    for layer in MODEL.layers:
        assert {x.name: (x.in_features, x.out_features) for x in block.linears} == {
            name: getattr(layer, name).shape for name in ("qkv", "out", "gate_up", "down")
        }
    arrays = [MODEL.embedding, MODEL.head, MODEL.final_gain]
    arrays += [getattr(layer, name) for layer in MODEL.layers for name in layer.__slots__]
    assert sum(a.size for a in arrays) == MODEL.model.num_parameters
    assert all(a.dtype == np.float32 for a in (*arrays, prefilled(PROMPT)[1]))
    cache = MODEL.new_cache(10)
    retained = MODEL.attention.cache_elements_per_token * block.count
    assert (cache.keys.size + cache.values.size) / 10 == retained


def test_a_seed_is_a_model():
    again, other = transformer(CONFIG, seed=3), transformer(CONFIG, seed=4)
    assert np.array_equal(again.head, MODEL.head)
    assert not np.allclose(other.head, MODEL.head)


@pytest.mark.parametrize(
    "change",
    [
        {"tie_word_embeddings": True},
        {"attention_bias": True},
        {"model_type": "qwen3"},
        {"model_type": "gpt2"},
        {"num_attention_heads": 8, "num_key_value_heads": 8},
        {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
    ],
)
def test_what_is_no_plain_llama_is_refused(change):
    with pytest.raises(ScenarioError, match="reference loop"):
        transformer({**CONFIG, **change})
