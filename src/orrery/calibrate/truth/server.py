"""A small server with continuous batching around a real model, under load, in real time, on one thread.

One step is either whole prompts, first come first served, as many as fit into the token budget and the free seats; or,
where no prompt can start, one more token of every running sequence. That is orrery's policy "prefill-first", and the
engine file "numpy" describes it. Answers have the lengths that the load states; tokens are the likeliest ones.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.calibrate.truth.served import Served, StepRecord
from orrery.calibrate.truth.transformer import Cache, Tokens, Work
from orrery.calibrate.truth.wall import Clock, WallClock
from orrery.engine.streams import stream
from orrery.serving.requests import Requests


class Steps(Protocol):
    """The interface of a model that a server uses."""

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        ...

    def new_cache(self, capacity_tokens: int) -> Cache:
        """Room for one sequence."""
        ...

    def step(self, work: Work) -> Tokens:
        """The next token of each sequence."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server; the defaults are those of the engine file "numpy"."""

    max_num_seqs: int = 16
    max_num_batched_tokens: int = 512


@dataclass(slots=True, kw_only=True, eq=False)
class _Sequence:
    """One request in a batch."""

    number: int
    cache: Cache
    tokens: Tokens  # that its next step computes
    left: int  # answer tokens that are still to come


@dataclass(slots=True, kw_only=True, eq=False)
class _Loop:
    """The state of a run."""

    model: Steps
    requests: Requests
    limits: Limits
    clock: Clock
    prompts: Sequence[Tokens]
    free: list[Cache]
    admitted_s: list[float]
    token_times_s: list[list[float]]
    upcoming: int = 0
    waiting: deque[int] = field(default_factory=deque[int])
    running: list[_Sequence] = field(default_factory=list[_Sequence])
    steps: list[StepRecord] = field(default_factory=list[StepRecord])
    has_waited: bool = True

    def run(self, until_s: float) -> None:
        """Serve until nothing is left, or until that time."""
        start_s, arrive_s = self.clock.now_s(), self.requests.arrive_s.tolist()
        while (now_s := self.clock.now_s() - start_s) < until_s:
            while self.upcoming < len(arrive_s) and arrive_s[self.upcoming] <= now_s:
                self.waiting.append(self.upcoming)
                self.upcoming += 1
            if batch := self._starting(now_s):
                self._step(batch, start_s, num_prompts=len(batch))
                self.running += batch
            elif self.running:
                self._step(self.running, start_s, num_prompts=0)
            elif self.upcoming < len(arrive_s):
                self.clock.wait_until(start_s + min(arrive_s[self.upcoming], until_s))
                self.has_waited = True
                continue
            else:
                return
            self._let_go()

    def _starting(self, now_s: float) -> list[_Sequence]:
        """The prompts that the next step computes."""
        batch: list[_Sequence] = []
        budget = self.limits.max_num_batched_tokens
        while self.waiting and self.free and len(self.prompts[self.waiting[0]]) <= budget:
            number = self.waiting.popleft()
            cache, prompt = self.free.pop(), self.prompts[number]
            cache.num_tokens = 0
            budget -= len(prompt)
            self.admitted_s[number] = now_s
            left = int(self.requests.output_tokens[number])
            batch.append(_Sequence(number=number, cache=cache, tokens=prompt, left=left))
        return batch

    def _step(self, batch: Sequence[_Sequence], start_s: float, num_prompts: int) -> None:
        """Compute a step and hand out its tokens."""
        work = [(s.cache, s.tokens) for s in batch]
        began_s = self.clock.now_s() - start_s
        tokens = self.model.step(work)
        ended_s = self.clock.now_s() - start_s
        self.steps.append(
            StepRecord(
                began_s=began_s,
                ended_s=ended_s,
                num_prompts=num_prompts,
                num_sequences=len(batch),
                num_tokens=sum(len(new) for _, new in work),
                has_waited=self.has_waited,
            )
        )
        self.has_waited = False
        for place, sequence in enumerate(batch):
            sequence.tokens = tokens[place : place + 1]
            sequence.left -= 1
            self.token_times_s[sequence.number].append(ended_s)

    def _let_go(self) -> None:
        """Free the seats of finished answers."""
        self.free += [s.cache for s in self.running if not s.left]
        self.running = [s for s in self.running if s.left]


def serve(
    model: Steps,
    requests: Requests,
    limits: Limits | None = None,
    *,
    clock: Clock | None = None,
    most_s: float = inf,
    seed: int = 0,
) -> Served:
    """Serve ``requests`` as they arrive, their prompts drawn by ``seed``; what is not done after ``most_s`` failed."""
    limits = limits or Limits()
    longest = int(requests.input_tokens.max())
    if longest > limits.max_num_batched_tokens:
        raise ScenarioError(
            f"input_tokens: a prompt of {longest} tokens never fits into a step of {limits.max_num_batched_tokens}; "
            f"write max_num_batched_tokens = {longest}."
        )
    capacity = int((requests.input_tokens + requests.output_tokens).max())
    loop = _Loop(
        model=model,
        requests=requests,
        limits=limits,
        clock=clock or WallClock(),
        prompts=_prompts(requests, model.vocab_size, seed),
        free=[model.new_cache(capacity) for _ in range(limits.max_num_seqs)],
        admitted_s=[np.nan] * requests.count,
        token_times_s=[[] for _ in range(requests.count)],
    )
    loop.run(most_s)
    return Served(
        requests=requests,
        admitted_s=np.array(loop.admitted_s),
        steps=tuple(loop.steps),
        token_times_s=tuple(np.array(times) for times in loop.token_times_s),
    )


def _prompts(requests: Requests, vocab_size: int, seed: int) -> list[Tokens]:
    """Prompts of the requests: any tokens do."""
    ends = np.cumsum(requests.input_tokens)
    tokens = stream(seed, "tokens").integers(vocab_size, size=int(ends[-1]))
    return np.split(tokens, ends[:-1])
