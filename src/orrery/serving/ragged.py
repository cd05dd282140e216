"""Speculative decoding of a batch whose sequences accept different numbers of draft tokens, in one padded tensor.

Every round the batch drafts, verifies, and is longer by a different number of tokens in each sequence. Then all caches
are shifted into one new padded tensor (``realign``), sequence by sequence and layer by layer; or rejected positions
stay where they are, masked, so that the tensor grows by every draft token (``padded``); or sequences wait in a pool,
from which those of one length are stacked as they are (``pool``), and the shift is only for rounds in which no such
group fills a batch. All keep every sequence's tokens those of decoding alone [batch-spec-2025]. Where all sequences of
a batch advance alike nothing is shifted, stacked or masked, and the ways are one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Ints = NDArray[np.int64]
Way = Literal["realign", "pool", "padded"]
WAYS: tuple[Way, ...] = ("realign", "pool", "padded")
"""Treatments of sequences that accepted different numbers of draft tokens."""


def _free(sequences: int, length: int) -> float:
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Cost of a round, by sequences and padded length, and the acceptance of drafts."""

    draft_s: Callable[[int, int], float]
    check_s: Callable[[int, int], float]
    shift_s: Callable[[int, int], float]  # into a new tensor, sequence by sequence
    stack_s: Callable[[int, int], float]  # caches of one length into one
    prompt_s: Callable[[int, int], float] = _free
    draft_tokens: int
    acceptance_frac: float
    acceptance_fracs: tuple[float, ...] = ()  # by position, in place of one for all
    output_tokens: int

    def __post_init__(self) -> None:
        if self.draft_tokens < 1 or not 0.0 <= self.acceptance_frac <= 1.0:
            raise ScenarioError(
                f"draft_tokens = {self.draft_tokens}, acceptance_frac = {self.acceptance_frac:g} in Rounds; write 1 "
                "or more, and 0 to 1."
            )
        if self.acceptance_fracs and len(self.acceptance_fracs) != self.draft_tokens:
            raise ScenarioError(
                f"acceptance_fracs: {len(self.acceptance_fracs)} for {self.draft_tokens} draft tokens; write one each."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a run: when it ended, how long it took, who was in it and what each took."""

    start_s: float
    end_s: float
    members: tuple[int, ...]
    taken: tuple[int, ...]  # 0 for those that are done
    length: int  # of the padded tensor


@dataclass(slots=True, kw_only=True)
class Ragged:
    """A run: seconds by what they went to, tokens, and rounds whose batch was of one length."""

    draft_s: float = 0.0
    check_s: float = 0.0
    align_s: float = 0.0
    prompt_s: float = 0.0
    num_tokens: int = 0
    num_rounds: int = 0
    num_grouped: int = 0
    num_shifts: int = 0
    rounds: list[Round] = field(default_factory=list[Round])
    starts_s: dict[int, float] = field(default_factory=dict[int, float])  # when a sequence's prompt began
    firsts_s: dict[int, float] = field(default_factory=dict[int, float])  # when its prompt was read

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.prompt_s + self.draft_s + self.check_s + self.align_s

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens a second."""
        return self.num_tokens / self.total_s

    @property
    def align_overhead_frac(self) -> float:
        """Share of the time beyond checking that goes to alignment."""
        return self.align_s / beyond if (beyond := self.align_s + self.draft_s) else 0.0


class _Draws:
    """Tokens that each sequence takes round by round: guesses up to the first that fails, and one more.

    They belong to the sequence, so they are the same however batches are formed.
    """

    def __init__(self, rounds: Rounds, seed: int) -> None:
        self._fracs = np.array(rounds.acceptance_fracs or (rounds.acceptance_frac,) * rounds.draft_tokens)
        self._seed = seed
        self._random, self._left = dict[int, np.random.Generator](), dict[int, list[int]]()

    def next(self, sequence: int) -> int:
        """Tokens that the sequence takes in its next round."""
        left = self._left.get(sequence)
        if not left:
            random = self._random.setdefault(sequence, np.random.default_rng((self._seed, sequence)))
            holds = random.random((64, self._fracs.size)) < self._fracs
            left = self._left[sequence] = (np.cumprod(holds, axis=1).sum(axis=1) + 1).tolist()
        return left.pop()


@dataclass(slots=True, kw_only=True, eq=False)
class _State:
    padded: list[int]  # length of each sequence with its padding
    content: list[int]  # without it
    left: list[int]  # answer tokens still to come


def realigned(rounds: Rounds, input_tokens: Ints, batch: int, seed: int = 0, outputs: Ints | None = None) -> Ragged:
    """Batches in the order given, each until its last sequence is done; a round whose sequences advanced by different
    numbers of tokens ends with a shift.
    """
    return _in_order(rounds, input_tokens, batch, seed, outputs, is_shifted=True)


def padded(rounds: Rounds, input_tokens: Ints, batch: int, seed: int = 0, outputs: Ints | None = None) -> Ragged:
    """The same without a shift: rejected positions stay in the tensor, masked."""
    return _in_order(rounds, input_tokens, batch, seed, outputs, is_shifted=False)


def _in_order(
    rounds: Rounds, input_tokens: Ints, batch: int, seed: int, outputs: Ints | None, *, is_shifted: bool
) -> Ragged:
    draws, run, state = _Draws(rounds, seed), Ragged(), _start(input_tokens, rounds, outputs)
    for first in range(0, input_tokens.size, batch):
        members = list(range(first, min(first + batch, input_tokens.size)))
        _read(rounds, state, members, run)
        while any(state.left[i] for i in members):
            taken = _round(rounds, state, members, run, draws)
            live = {n for i, n in zip(members, taken, strict=True) if n and state.left[i]}
            if is_shifted:
                longest = max(state.content[i] for i in members)
                if len(live) > 1:
                    run.align_s += rounds.shift_s(len(members), longest)
                    run.num_shifts += 1
            else:
                longest = max(state.padded[i] - n for i, n in zip(members, taken, strict=True))
                longest += max(live, default=0) if len(live) <= 1 else rounds.draft_tokens + 1
            for i in members:
                state.padded[i] = longest
    return run


def pooled(
    rounds: Rounds, input_tokens: Ints, batch: int, window: int, seed: int = 0, outputs: Ints | None = None
) -> Ragged:
    """A window of unfinished sequences, shortest prompts first; a batch is the first group of one length that fills it,
    or else the first of the window, shifted to the longest of them. A batch that stays as it is is not stacked anew.
    """
    order = np.argsort(input_tokens, kind="stable")
    draws, run, state = _Draws(rounds, seed), Ragged(), _start(input_tokens, rounds, outputs)
    queue: list[int] = order.tolist()
    for i in queue:
        if not state.left[i]:
            _read(rounds, state, [i], run)
    active, last = [i for i in queue if state.left[i]], list[int]()
    while active:
        members, alike = _group(state.padded, active[:window], batch)
        lengths = state.padded if alike else state.content
        is_new = _read(rounds, state, members, run) == len(members)
        longest = max(lengths[i] for i in members)
        if batch > 1 and not is_new and not (alike and members == last):
            run.align_s += (rounds.stack_s if alike else rounds.shift_s)(len(members), longest)
            run.num_shifts += not alike
        run.num_grouped += alike
        for i in members:
            state.padded[i] = longest
        _round(rounds, state, members, run, draws)
        last = members
        if not all(state.left[i] for i in members):
            active = [i for i in active if state.left[i]]
    return run


def _start(lengths: Ints, rounds: Rounds, outputs: Ints | None) -> _State:
    prompts: list[int] = lengths.tolist()
    left: list[int] = [rounds.output_tokens] * len(prompts) if outputs is None else outputs.tolist()
    return _State(padded=list(prompts), content=list(prompts), left=left)


def _read(rounds: Rounds, state: _State, members: list[int], run: Ragged) -> int:
    """Read the prompts of those that have not been read, padded to the longest, and return how many there were."""
    new = [i for i in members if i not in run.firsts_s]
    if not new:
        return 0
    start_s = run.total_s
    run.prompt_s += rounds.prompt_s(len(new), max(state.content[i] for i in new))
    for i in new:
        run.starts_s[i], run.firsts_s[i] = start_s, run.total_s
    longest = max(state.content[i] for i in members)
    if len(new) == len(members):
        for i in members:
            state.padded[i] = max(state.padded[i], longest)
    return len(new)


def _group(padded: list[int], active: list[int], batch: int) -> tuple[list[int], bool]:
    """The first sequences that share a length and fill a batch; else the first ones, whatever they are."""
    groups: dict[int, list[int]] = {}
    for i in active:
        group = groups.setdefault(padded[i], [])
        group.append(i)
        if len(group) == batch:
            return group, True
    return active[:batch], False


def _round(rounds: Rounds, state: _State, members: list[int], run: Ragged, draws: _Draws) -> list[int]:
    """Guess for those that are not done, check all, and take what holds and the model's own token."""
    start_s = run.total_s
    length, busy = max(state.padded[i] for i in members), sum(state.left[i] > 0 for i in members)
    run.draft_s += rounds.draft_s(busy, length)
    run.check_s += rounds.check_s(len(members), length)
    taken = [min(draws.next(i), state.left[i]) if state.left[i] else 0 for i in members]
    for i, number in zip(members, taken, strict=True):
        state.padded[i] += number
        state.content[i] += number
        state.left[i] -= number
        run.num_tokens += number
    run.num_rounds += 1
    run.rounds.append(
        Round(start_s=start_s, end_s=run.total_s, members=tuple(members), taken=tuple(taken), length=length)
    )
    return taken
