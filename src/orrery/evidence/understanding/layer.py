"""The layer of orrery that a paper belongs to: one line a layer over the words of title and abstract.

A word, or a concept of the field that words name (KV cache, mixture of experts), counts (1 + log times) x log(papers /
papers that have it), the title's three times; the text's vector has
length one. Scores are those of linear support vector machines, one layer against all others. Their softmax, sharpened
so that it was right as often as it said on papers that had been left out, is the confidence.
"""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from orrery.evidence.find.terms import STOP_WORDS, is_concept, stems, terms, words
from orrery.evidence.understanding.weights import Array, Weights, shipped

TITLE_TIMES = 3

_STEMS: dict[str, str] = {}
"""Word -> stem, of those that were asked for: most words of a paper stand in the one before."""


def layer_of(title: str, abstract: str) -> tuple[str, float]:
    """The likeliest layer and the chance that it is right; empty and 0 for words that say nothing."""
    known = shipped()
    vector = vector_of(counted(title, abstract), known.places, known.rarities)
    if not vector.any():
        return "", 0.0
    chances = softmax(scores(vector, known), known.sharpness_ratio)
    best = int(np.argmax(chances))
    return known.layers[best], float(chances[best])


def counted(title: str, abstract: str) -> Counter[str]:
    """How often each stem and each concept stands in a paper."""
    heads, bodies = _describe(title), _describe(abstract)
    if new := {word for word in (*heads, *bodies) if word not in _STEMS}:
        _STEMS.update({word: word for word in new} | stems(new))
    concepts = _concepts(title) * TITLE_TIMES + _concepts(abstract)
    return Counter([*(_STEMS[word] for word in heads * TITLE_TIMES + bodies), *concepts])


def _describe(text: str) -> list[str]:
    """Words that say something; numbers do not."""
    return [w for w in words(text) if w not in STOP_WORDS and not w.replace(".", "").isdigit()]


def _concepts(text: str) -> list[str]:
    """Concepts of the field that a text names, each once."""
    return [term for term in terms(text) if is_concept(term)]


def vector_of(count: Mapping[str, int], places: Mapping[str, int], rarities: Array) -> Array:
    """A paper as a vector of length one; zero where no word is known."""
    vector = np.zeros(len(places), dtype=np.float32)
    for stem, times in count.items():
        if (place := places.get(stem)) is not None:
            vector[place] = (1.0 + math.log(times)) * rarities[place]
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def scores(vector: Array, known: Weights) -> Array:
    """A number a layer, the larger the likelier."""
    return known.layer_weights @ vector + known.layer_biases


def softmax(values: Array, sharpness_ratio: float) -> Array:
    """Scores as chances, along the last axis."""
    powers = np.exp(sharpness_ratio * (values - values.max(axis=-1, keepdims=True)))
    return powers / powers.sum(axis=-1, keepdims=True)
