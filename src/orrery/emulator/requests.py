"""From a body to what the simulator is asked: prompts as tokens, and how long each answer will be.

An answer's length is settled when its request comes, because nothing is computed that could settle it later: what the
request allows, or where the model would end by itself (a draw from the service's lengths), or a string at which the
request wants it to stop, whichever is first.
"""

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from orrery.emulator.bodies import Chat, Claude, Completion, Counted, Sampling, check
from orrery.emulator.engine_blocks import names_for
from orrery.emulator.logprobs import Logprobs, logprobs_of
from orrery.emulator.prompts import Tokens, content_text, of_any, of_conversation, of_text, too_long
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings
from orrery.emulator.structured import Structure, structure_of, structure_of_message
from orrery.emulator.words import LENGTH, Answer, Written
from orrery.serving.synthesis.lengths import draw

COMPLETION_TOKENS = 16
"""Largest length of a completion that does not say how long it may be: the interface's own default."""

OWN_TOKENS = 256
"""Length of an answer that nobody limits, where the service has no lengths of its own."""

MAX_JOBS = 1024
"""Answers of one request: prompts x choices."""

MAX_TOKENS = 2**18
"""Largest number of tokens of one request, each prompt counted for each of its answers, unless a single sequence may be
longer: to name all their blocks keeps everybody else waiting, for some tens of milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One answer to be made."""

    num_prompt_tokens: int
    answer: Answer | Written
    blocks: Sequence[Hashable]  # names of the full blocks of prompt and answer


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedRequest:
    """A request as the simulator sees it; the answers' order is that of their index."""

    jobs: list[Job]
    num_choices: int  # of each prompt
    most_tokens: int
    streams: bool = False
    tells_usage: bool = False
    tells_usage_always: bool = False
    priority_ratio: float = 0.0  # lower goes first
    user: str = ""  # whom fair queues share with others
    adapter: int = -1  # its number; -1: the model itself
    origin: int = 0  # of the service's origins, the first where nothing says
    session: str = ""  # whom routers send to the same replica again
    structure: Structure | None = None  # of the answers; None: words
    logprobs: Logprobs | None = None  # None: not wanted

    @property
    def num_prompt_tokens(self) -> int:
        """Number of tokens of all prompts, each counted once."""
        return sum(job.num_prompt_tokens for job in self.jobs[:: self.num_choices])


class ReadOnly(Protocol):
    """A request whose inputs are read, and which is answered with numbers."""

    model: str | None
    priority: float
    user: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """A request's limits on the lengths of its answers."""

    most_tokens: int | None
    min_tokens: int = 0
    ends_itself: bool = True
    stops: tuple[str, ...] = ()
    keeps_stop: bool = False
    structure: Structure | None = None


class RequestParser:
    """Reads requests for one service; answers that nobody seeds differ from each other."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._names, self._count = settings, names_for(settings), 0

    def chat(self, body: Chat) -> EmulatedRequest:
        """A conversation's next turn."""
        text = of_conversation(body.messages, body.tools)
        most = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
        return self._sampled(body, [of_text(text, self._settings.context_tokens)], most)

    def completion(self, body: Completion) -> EmulatedRequest:
        """Texts to be continued."""
        prompts = of_any(body.prompt, self._settings.context_tokens)
        return self._sampled(body, prompts, COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens)

    def message(self, body: Claude) -> EmulatedRequest:
        """The same conversation in another interface's words."""
        tokens = self.written(body)
        structure = structure_of_message(body)
        limits = _Limits(most_tokens=body.max_tokens, stops=tuple(body.stop_sequences or ()), structure=structure)
        adapter = self._settings.adapter_of(body.model)
        jobs = self._jobs(
            [tokens], limits, [self._draws(tokens, None, body.temperature)], 1, self._names.root(None, adapter)
        )
        return EmulatedRequest(
            jobs=jobs,
            num_choices=1,
            most_tokens=body.max_tokens,
            streams=bool(body.stream),
            adapter=adapter,
            structure=structure,
        )

    def written(self, body: Claude | Counted) -> list[bytes]:
        """The tokens of a conversation in that interface's words."""
        system = f"<|system|>\n{content_text(body.system)}\n" if body.system else ""
        return of_text(system + of_conversation(body.messages, body.tools), self._settings.context_tokens)

    def embedding(self, body: ReadOnly, inputs: Sequence[Tokens]) -> EmulatedRequest:
        """Inputs to be read: the work of their first token, which nobody gets to see."""
        if len(inputs) > MAX_JOBS:
            raise RequestError(400, f"input: {len(inputs)} are too many; at most {MAX_JOBS} at once.", "input")
        limits = _Limits(most_tokens=1)
        adapter = self._settings.adapter_of(body.model)
        jobs = self._jobs(inputs, limits, [np.random.default_rng(0)] * len(inputs), 1, self._names.root(None, adapter))
        return EmulatedRequest(
            jobs=jobs,
            num_choices=1,
            most_tokens=1,
            priority_ratio=body.priority,
            adapter=adapter,
            user=body.user or "",
            session=body.user or "",
        )

    def _sampled(self, body: Sampling, prompts: Sequence[Tokens], most_tokens: int | None) -> EmulatedRequest:
        check(body)
        num_choices = body.n or 1
        if num_choices * len(prompts) > MAX_JOBS:
            raise RequestError(
                400, f"{len(prompts)} prompts x n = {num_choices} are too many; at most {MAX_JOBS}.", "n"
            )
        stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
        limits = _Limits(
            most_tokens=most_tokens,
            min_tokens=body.min_tokens,
            ends_itself=not body.ignore_eos,
            stops=stops,
            keeps_stop=body.include_stop_str_in_output,
            structure=structure_of(body),
        )
        draws = [self._draws(tokens, body.seed, body.temperature) for tokens in prompts]
        adapter = self._settings.adapter_of(body.model)
        jobs = self._jobs(prompts, limits, draws, num_choices, self._names.root(body.cache_salt, adapter))
        options, logprobs = body.stream_options, logprobs_of(body)
        if logprobs is not None and not body.stream:
            logprobs.check(sum(job.answer.num_tokens for job in jobs))
        return EmulatedRequest(
            jobs=jobs,
            num_choices=num_choices,
            most_tokens=most_tokens or self._settings.context_tokens,
            streams=bool(body.stream),
            tells_usage=options is not None and options.include_usage,
            tells_usage_always=options is not None and options.include_usage and options.continuous_usage_stats,
            priority_ratio=body.priority,
            adapter=adapter,
            user=body.user or "",
            session=body.user or "",
            structure=limits.structure,
            logprobs=logprobs,
        )

    def _draws(self, tokens: Tokens, seed: int | None, temperature: float | None) -> np.random.Generator:
        """Draws for the answers to a prompt: the same again for the same seed, or where nothing is left to chance."""
        if seed is None and temperature != 0:
            self._count += 1
            return np.random.default_rng([self._settings.seed, self._count])
        text = b"".join(x if isinstance(x, bytes) else x.to_bytes(8) for x in tokens)
        return np.random.default_rng([self._settings.seed, 0, crc32(text, crc32(str(seed).encode()))])

    def _jobs(
        self,
        prompts: Sequence[Tokens],
        limits: _Limits,
        draws: Sequence[np.random.Generator],
        num_choices: int,
        root: Any,
    ) -> list[Job]:
        """The answers to every prompt; their lengths first, so that what is too much costs nothing."""
        answers = [
            self._answers(len(tokens), limits, chance, num_choices)
            for tokens, chance in zip(prompts, draws, strict=True)
        ]
        total = sum(
            len(t) * num_choices + sum(a.num_tokens for a in of) for t, of in zip(prompts, answers, strict=True)
        )
        most = max(MAX_TOKENS, self._settings.context_tokens)
        if total > most:
            raise RequestError(400, f"The request needs {total:,} tokens (total); the limit is {most:,}.", "n")
        found: list[Job] = []
        for tokens, of in zip(prompts, answers, strict=True):
            for answer in of if limits.stops else ():
                answer.stop_at(list(limits.stops), limits.min_tokens, limits.keeps_stop)
            found += self._named(tokens, of, root)
        return found

    def _named(self, tokens: Tokens, answers: Sequence[Answer | Written], root: Any) -> list[Job]:
        """Answers to one prompt, with the names of their blocks: those of the prompt, then their own."""
        names = self._names.follow(tokens, root)
        last, rest = names[-1] if names else root, tokens[len(names) * self._settings.block_tokens :]
        return [
            Job(
                num_prompt_tokens=len(tokens),
                answer=answer,
                blocks=[*names, *self._names.follow([*rest, *answer.tokens()], last)],
            )
            for answer in answers
        ]

    def _answers(
        self, num_prompt_tokens: int, limits: _Limits, draws: np.random.Generator, num_choices: int
    ) -> list[Answer] | list[Written]:
        """Answers to one prompt; documents are written once, because that takes time, and given to all choices."""
        if limits.structure is None:
            return [self._answer(num_prompt_tokens, limits, draws) for _ in range(num_choices)]
        own_tokens = self._own_tokens(limits, draws) if self._settings.answer is not None else OWN_TOKENS
        most = self._most(num_prompt_tokens, limits)
        if self._settings.answer is None:
            own_tokens = min(own_tokens, most)
        first = limits.structure.answer(draws, own_tokens, most)
        return [first, *(copy(first) for _ in range(num_choices - 1))]

    def _answer(self, num_prompt_tokens: int, limits: _Limits, draws: np.random.Generator) -> Answer:
        most = self._most(num_prompt_tokens, limits)
        own = max(limits.min_tokens, self._own_tokens(limits, draws)) if limits.ends_itself else most + 1
        return Answer(int(draws.integers(LENGTH)), min(own, most), "stop" if own <= most else "length")

    def _most(self, num_prompt_tokens: int, limits: _Limits) -> int:
        """Largest number of tokens of an answer; refused where it fits no context, or where nothing may be said."""
        left = self._settings.context_tokens - num_prompt_tokens
        most = left if limits.most_tokens is None else limits.most_tokens
        if left < 1 or most > left:
            raise too_long(f"{num_prompt_tokens:,}", self._settings.context_tokens, limits.most_tokens or 0)
        if most < 1:
            raise RequestError(400, "max_tokens: got 0; an answer has at least one token.", "max_tokens")
        if limits.min_tokens > most:
            raise RequestError(
                400, f"min_tokens: {limits.min_tokens:,} is more than max_tokens, {most:,}.", "min_tokens"
            )
        return most

    def _own_tokens(self, limits: _Limits, draws: np.random.Generator) -> int:
        """Where the model would end by itself."""
        if self._settings.answer is not None:
            return int(draw(self._settings.answer, 1, draws)[0])
        return OWN_TOKENS if limits.most_tokens is None else limits.most_tokens + 1
