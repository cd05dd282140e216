"""Conversations: people who ask, read, think and ask again, each time with all that was said before."""

from dataclasses import dataclass, field
from typing import Any

from orrery.engine.streams import stream
from orrery.serving.requests import Requests
from orrery.serving.synthesis.growing import Sharing, Turns, filled, grown, pauses, turn_numbers
from orrery.serving.synthesis.lengths import Length, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Shape of a conversation.

    ``turns_law`` is geometric or constant; ``think_law`` is lognormal, exponential or constant.
    """

    num_turns: float = 4.0  # mean requests a conversation
    turns_law: str = "geometric"
    think_s: float = 30.0  # mean pause between an answer's end and the next question
    think_cv_ratio: float = 1.0  # spread of the pauses over their mean, for the lognormal
    think_law: str = "lognormal"
    system_tokens: int = 0  # the system prompt, the same for all
    question: Length = field(default_factory=lambda: Length(mean_tokens=100.0, std_tokens=100.0))
    answer: Length = field(default_factory=lambda: Length(mean_tokens=250.0, std_tokens=200.0))
    context_tokens: int = 0  # a conversation ends before it outgrows this; 0 = no limit
    block_tokens: int = 16  # of the prefix cache


def conversations(
    count: int,
    rate_per_s: float,
    seed: int = 0,
    traffic: Conversations | None = None,
    law: str = "poisson",
    **knobs: Any,
) -> Requests:
    """``count`` requests in conversations that begin by an arrival law, such that requests come at ``rate_per_s``.

    The rate is that of a server which keeps up: conversations begin at the rate over the mean number of turns.

    >>> made = conversations(3, 1.0, traffic=Conversations(num_turns=3, turns_law="constant"))
    >>> made.after.tolist()
    [-1, 0, 1]
    """
    like = traffic or Conversations()
    sharing = Sharing(
        system_tokens=like.system_tokens, context_tokens=like.context_tokens, block_tokens=like.block_tokens
    )

    def make(requested: int) -> Turns:
        return Turns(
            turn=turn_numbers(requested, like.num_turns, like.turns_law, seed),
            new_tokens=draw(like.question, requested, stream(seed, "lengths/input")),
            answer_tokens=draw(like.answer, requested, stream(seed, "lengths/output")),
            pause_s=pauses(requested, like.think_s, like.think_cv_ratio, like.think_law, seed),
        )

    return grown(filled(count, make, sharing), sharing, rate_per_s, seed, law, knobs)
