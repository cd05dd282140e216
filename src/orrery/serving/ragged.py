"""Guessing and checking for a batch whose sequences accept different numbers of guesses, in one padded tensor.

Every round the batch guesses, checks, and is longer by a different number of tokens in each sequence. Then either all
caches are shifted into one new padded tensor (``realign``), sequence by sequence and layer by layer; or sequences wait
in a pool, from which those of one length are stacked as they are (``pool``), and the shift is only for rounds in which
no such group fills a batch. Both keep every sequence's tokens those of decoding alone. [batch-spec-2025]
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What a round costs, by sequences and padded length, and how guesses hold."""

    draft_s: Callable[[int, int], float]
    check_s: Callable[[int, int], float]
    shift_s: Callable[[int, int], float]  # into a new tensor, sequence by sequence
    stack_s: Callable[[int, int], float]  # caches of one length into one
    draft_tokens: int
    acceptance_frac: float
    output_tokens: int

    def __post_init__(self) -> None:
        if self.draft_tokens < 1 or not 0.0 <= self.acceptance_frac <= 1.0:
            raise ScenarioError(
                f"draft_tokens = {self.draft_tokens}, acceptance_frac = {self.acceptance_frac:g} in Rounds; write 1 "
                "or more, and 0 to 1."
            )


@dataclass(slots=True, kw_only=True)
class Ragged:
    """A run: seconds by what they went to, tokens, and rounds whose batch was of one length."""

    draft_s: float = 0.0
    check_s: float = 0.0
    align_s: float = 0.0
    num_tokens: int = 0
    num_rounds: int = 0
    num_grouped: int = 0

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.draft_s + self.check_s + self.align_s

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens a second."""
        return self.num_tokens / self.total_s

    @property
    def align_overhead_frac(self) -> float:
        """Share of the time beyond checking that goes to alignment."""
        return self.align_s / (self.align_s + self.draft_s)


def accepted(rounds: Rounds, seed: int) -> Iterator[int]:
    """Tokens that a sequence takes in a round, draw by draw: guesses up to the first that fails, and one more."""
    draws = np.random.default_rng(seed)
    while True:
        holds = draws.random((4096, rounds.draft_tokens)) < rounds.acceptance_frac
        yield from (np.cumprod(holds, axis=1).sum(axis=1) + 1).tolist()


@dataclass(slots=True, kw_only=True, eq=False)
class _State:
    padded: list[int]  # length of each sequence with its padding
    content: list[int]  # without it
    left: list[int]  # answer tokens still to come


def realigned(rounds: Rounds, input_tokens: Ints, batch: int, seed: int = 0) -> Ragged:
    """Batches in the order given, each until its last sequence is done; every round ends with a shift."""
    draws, run, lengths = accepted(rounds, seed), Ragged(), input_tokens.tolist()
    for first in range(0, len(lengths), batch):
        state = _start(lengths[first : first + batch], rounds)
        members = list(range(len(state.left)))
        while any(state.left):
            _round(rounds, state, members, run, draws)
            longest = max(state.content)
            state.padded = [longest] * len(members)
            run.align_s += rounds.shift_s(len(members), longest)
    return run


def pooled(rounds: Rounds, input_tokens: Ints, batch: int, window: int, seed: int = 0) -> Ragged:
    """A window of unfinished sequences, shortest prompts first; a batch is the first group of one length that fills it,
    or else the first of the window, shifted to the longest of them.
    """
    draws, run = accepted(rounds, seed), Ragged()
    state = _start(sorted(input_tokens.tolist()), rounds)
    active = list(range(len(state.left)))
    while active:
        members, alike = _group(state.padded, active[:window], batch)
        lengths = state.padded if alike else state.content
        longest = max(lengths[i] for i in members)
        if batch > 1:
            run.align_s += (rounds.stack_s if alike else rounds.shift_s)(len(members), longest)
        run.num_grouped += alike
        for i in members:
            state.padded[i] = longest
        _round(rounds, state, members, run, draws)
        if not all(state.left[i] for i in members):
            active = [i for i in active if state.left[i]]
    return run


def _start(lengths: list[int], rounds: Rounds) -> _State:
    return _State(padded=list(lengths), content=list(lengths), left=[rounds.output_tokens] * len(lengths))


def _group(padded: list[int], active: list[int], batch: int) -> tuple[list[int], bool]:
    """The first sequences that share a length and fill a batch; else the first ones, whatever they are."""
    groups: dict[int, list[int]] = {}
    for i in active:
        group = groups.setdefault(padded[i], [])
        group.append(i)
        if len(group) == batch:
            return group, True
    return active[:batch], False


def _round(rounds: Rounds, state: _State, members: list[int], run: Ragged, draws: Iterator[int]) -> None:
    """Guess for those that are not done, check all, and take what holds and the model's own token."""
    length, busy = max(state.padded[i] for i in members), [i for i in members if state.left[i]]
    run.draft_s += rounds.draft_s(len(busy), length)
    run.check_s += rounds.check_s(len(members), length)
    for i in busy:
        taken = min(next(draws), state.left[i])
        state.padded[i] += taken
        state.content[i] += taken
        state.left[i] -= taken
        run.num_tokens += taken
    run.num_rounds += 1
