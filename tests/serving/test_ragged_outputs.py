"""A toy pair of models, really run: every way to batch drafts gives each sequence the tokens of decoding alone.

One layer of attention over a padded tensor of keys and values with a mask; positions are a sequence's own. The small
model is the large one with noise on its weights, so that some of its tokens are accepted and some are not.
"""

from dataclasses import dataclass

import numpy as np
import pytest

VOCABULARY, WIDTH, LONGEST = 13, 8, 256


@dataclass
class Toy:
    """Embedding, three projections, output: greedy decoding."""

    embedding: np.ndarray
    position: np.ndarray
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    head: np.ndarray

    def enter(self, tokens, positions):
        """Keys and values of some tokens at some positions."""
        x = self.embedding[tokens] + self.position[positions]
        return x @ self.query, x @ self.key, x @ self.value, x

    def following(self, query, keys, values, x, seen):
        """The next token of each query, which looks at what is ``seen``."""
        scores = np.where(seen, query @ keys.T / np.sqrt(WIDTH), -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out = weights / weights.sum(axis=1, keepdims=True) @ values + x
        return np.argmax(out @ self.head, axis=1)


def toy(seed, noise=0.0):
    random = np.random.default_rng(3)
    shapes = [(VOCABULARY, WIDTH), (LONGEST, WIDTH), *[(WIDTH, WIDTH)] * 3, (WIDTH, VOCABULARY)]
    parts = [random.standard_normal(shape) for shape in shapes]
    if noise:
        more = np.random.default_rng(seed)
        parts = [part + noise * more.standard_normal(part.shape) for part in parts]
    return Toy(*parts)


def alone(model, prompt, count):
    """Greedy decoding without cache or batch."""
    text = list(prompt)
    for _ in range(count):
        q, k, v, x = model.enter(np.array(text), np.arange(len(text)))
        text.append(int(model.following(q[-1:], k, v, x[-1:], np.ones((1, len(text)), bool))[0]))
    return text[len(prompt) :]


class Row:
    """One sequence in a padded tensor: keys, values, and which columns are its own."""

    def __init__(self, prompt):
        self.text, self.done = list(prompt), len(prompt)  # tokens; how many are cached
        self.keys, self.values, self.mine = np.zeros((0, WIDTH)), np.zeros((0, WIDTH)), np.zeros(0, bool)

    def verify(self, model, drafts):
        """The model's own token after the last sure one and after each draft, in one pass over the tensor."""
        cached = int(self.mine.sum())
        new = [*self.text[cached:], *drafts]
        q, k, v, x = model.enter(np.array(new), cached + np.arange(len(new)))
        keys, values = np.vstack([self.keys, k]), np.vstack([self.values, v])
        causal = np.tril(np.ones((len(new), len(new)), bool))
        seen = np.hstack([np.broadcast_to(self.mine, (len(new), self.mine.size)), causal])
        found = model.following(q, keys, values, x, seen)[-len(drafts) - 1 :]
        accepted = 0
        while accepted < len(drafts) and drafts[accepted] == found[accepted]:
            accepted += 1
        kept = len(new) - len(drafts) + accepted
        self.keys, self.values = keys, values
        self.mine = np.concatenate([self.mine, np.arange(len(new)) < kept])
        self.text += [*drafts[:accepted], int(found[accepted])]

    def pad(self, columns):
        """Masked columns at the end, so that rows of one tensor are as long."""
        more = columns - self.mine.size
        self.keys, self.values = (np.vstack([x, np.zeros((more, WIDTH))]) for x in (self.keys, self.values))
        self.mine = np.concatenate([self.mine, np.zeros(more, bool)])

    def shift(self, columns):
        """Out of its padding and holes, and back against the right edge of a new tensor."""
        keys, values = self.keys[self.mine], self.values[self.mine]
        empty = np.zeros((columns - len(keys), WIDTH))
        self.keys, self.values = np.vstack([empty, keys]), np.vstack([empty, values])
        self.mine = np.arange(columns) >= columns - len(keys)


def drafted(small, text, count):
    return alone(small, text, count)


def speculate(way, model, small, prompts, count, drafts):
    """Batches of all prompts until each has ``count`` more tokens; how many rounds were of one length."""
    rows, alike = [Row(p) for p in prompts], 0
    while waiting := [r for r, p in zip(rows, prompts, strict=True) if len(r.text) < len(p) + count]:
        batch = waiting
        if way == "pool":
            groups = {}
            for row in waiting:
                groups.setdefault(row.mine.size, []).append(row)
            batch = max(groups.values(), key=len)
            alike += len(batch) > 1
        for row in batch:
            row.verify(model, drafted(small, row.text, drafts))
        if way == "realign":
            longest = max(int(row.mine.sum()) for row in batch)
            for row in batch:
                row.shift(longest)
        elif way == "padded":
            longest = max(row.mine.size for row in batch)
            for row in batch:
                row.pad(longest)
    return [r.text[len(p) : len(p) + count] for r, p in zip(rows, prompts, strict=True)], alike


PROMPTS = [[1, 4, 2], [7, 7], [3, 9, 11, 5, 2], [12], [0, 6, 1, 8]]


@pytest.mark.parametrize("way", ["realign", "pool", "padded"])
@pytest.mark.parametrize("noise", [0.0, 0.15, 3.0])
def test_outputs_are_those_of_decoding_alone(way, noise):
    model, small = toy(0), toy(1, noise)
    found, _ = speculate(way, model, small, PROMPTS, 24, 3)
    assert found == [alone(model, prompt, 24) for prompt in PROMPTS]


def test_the_pair_is_neither_always_nor_never_right():
    model, small = toy(0), toy(1, 0.15)
    text = alone(model, PROMPTS[2], 40)
    right = [alone(small, PROMPTS[2] + text[:i], 1)[0] == text[i] for i in range(40)]
    assert 0.2 < np.mean(right) < 1.0


def test_without_the_shift_a_naive_batch_would_go_wrong():
    """The mask is what keeps outputs: a row that takes its rejected columns as its own says something else."""
    model, small = toy(0), toy(1, 3.0)
    row = Row(PROMPTS[2])
    while len(row.text) < len(PROMPTS[2]) + 24:
        row.verify(model, drafted(small, row.text, 3))
        cached = int(row.mine.sum())
        row.mine = np.arange(row.mine.size) < cached  # the first columns, rejected ones among them
    assert row.text[len(PROMPTS[2]) : len(PROMPTS[2]) + 24] != alone(model, PROMPTS[2], 24)
