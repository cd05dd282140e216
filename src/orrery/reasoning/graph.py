"""One question as a graph of calls: who writes how many tokens after what, and what calls have in common.

A shape (best-of-n, a search, a sequence of revisions) turns a question into such a graph; a graph is priced by what
it writes, prefills, keeps and reads, whoever drew it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A question: its prompt, and what one plain answer to it takes."""

    prompt_tokens: float
    answer_tokens: float

    def __post_init__(self) -> None:
        if self.prompt_tokens < 0 or self.answer_tokens <= 0:
            raise ScenarioError(
                f"prompt_tokens = {self.prompt_tokens:g}, answer_tokens = {self.answer_tokens:g}; "
                "write a prompt of 0 or more tokens and an answer of more than 0."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``count`` completions alike, which start together when every call of ``after`` is done.

    Each sees ``context_tokens`` before its own ``output_tokens``. Where prefixes are shared, all of them together keep
    ``distinct_tokens`` of context, and ``fresh_tokens`` of that have to be prefilled now; where not, each keeps and
    prefills all of its context.
    """

    name: str
    count: int
    context_tokens: float
    distinct_tokens: float
    fresh_tokens: float
    output_tokens: float  # 0 for a verifier that only reads
    model: str = "solver"  # which deployment runs it: "solver", "verifier", "draft"
    after: tuple[str, ...] = ()
    is_online: bool = True  # False: done before the question came

    @property
    def written_tokens(self) -> float:
        """Tokens that all of them write."""
        return self.count * self.output_tokens

    def kept_tokens(self, shares_prefix: bool) -> float:
        """Tokens in the cache when all of them are done."""
        context = self.distinct_tokens if shares_prefix else self.count * self.context_tokens
        return context + self.written_tokens

    def prefilled_tokens(self, shares_prefix: bool) -> float:
        """Tokens that have to be read before the first is written."""
        return self.fresh_tokens if shares_prefix else self.count * self.context_tokens

    def attended_tokens(self) -> float:
        """Query-key pairs of what is written: every token sees its context and all that came before it."""
        return self.count * self.output_tokens * (self.context_tokens + self.output_tokens / 2)

    def read_tokens(self) -> float:
        """Cached tokens read while writing, by a kernel that reads what sequences share once a step for all."""
        return self.output_tokens * (self.distinct_tokens + self.written_tokens / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Calls in an order in which they may run."""

    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        seen = set[str]()
        for call in self.calls:
            if call.name in seen or not seen.issuperset(call.after):
                raise ScenarioError(
                    f"call {call.name!r} after {', '.join(call.after) or 'nothing'}: "
                    "name every call once, and those that it waits for before it."
                )
            seen.add(call.name)

    def times(self, count: int) -> "Graph":
        """Repeat the calls for ``count`` questions alike, asked at once; they share nothing."""
        return Graph(
            calls=tuple(
                replace(
                    call,
                    count=count * call.count,
                    distinct_tokens=count * call.distinct_tokens,
                    fresh_tokens=count * call.fresh_tokens,
                )
                for call in self.calls
            )
        )

    def of(self, model: str) -> Iterator[Call]:
        """The calls of one model."""
        return (call for call in self.calls if call.model == model)

    def written_tokens(self, *, online_only: bool = False) -> float:
        """Tokens that are written in all."""
        return sum(call.written_tokens for call in self.calls if call.is_online or not online_only)


def answers(problem: Problem, count: int) -> Call:
    """``count`` independent answers over one prompt."""
    prompt = problem.prompt_tokens
    return Call(
        name="solve",
        count=count,
        context_tokens=prompt,
        distinct_tokens=prompt,
        fresh_tokens=prompt,
        output_tokens=problem.answer_tokens,
    )


def readings(problem: Problem, solve: Call, *, name: str, per_answer: int, output_tokens: float) -> Call:
    """A verifier's readings of every answer, ``per_answer`` times: it reads the prompt once and each answer once."""
    read = problem.prompt_tokens + solve.written_tokens
    return Call(
        name=name,
        model="verifier",
        after=(solve.name,),
        count=solve.count * per_answer,
        context_tokens=problem.prompt_tokens + solve.output_tokens,
        distinct_tokens=read,
        fresh_tokens=read,
        output_tokens=output_tokens,
    )
