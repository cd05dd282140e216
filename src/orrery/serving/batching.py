"""Batching: the switches that policies set, one dataclass for all of them."""

from dataclasses import dataclass

IN_CLOSED_FORM = "in-closed-form"
"""Trait of policies that the analytical estimate knows: a token budget, with prompts in the same steps or before."""

READS_PREFIXES = "reads-prefixes"
"""Trait of routers that ask how much of a prompt each replica holds."""

BALANCES = "balances"
"""Trait of routers that send a request where fewest are."""

READS_ADAPTERS = "reads-adapters"
"""Trait of routers that ask which replicas hold a request's adapter."""

DRAWS = "draws"
"""Trait of routers that choose at random."""

EVICTS_BY_KEY = "evicts-by-key"
"""Trait of queues whose order also says who is preempted; under the others it is whoever came last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """A policy's decisions beyond the tokens that it grants to a prompt."""

    chunk_tokens: int = 0  # most prompt tokens in a step; 0 = the token budget
    mixes: bool = True  # prompts and decodes share steps; otherwise prompts go first, alone
    alternates: bool = False  # and after each step of prompts comes one of decodes
    waits_for_empty: bool = False  # a batch is formed when the last one has ended
    holds_batch: bool = False  # answers that are done stay in the batch until all are
    returns_together: bool = False  # and leave with it
    pads_prompts: bool = False  # all prompts of a batch are as long as the longest
    reserves_output: bool = False  # the cache of the whole answer is reserved at admission
    layer_group_tokens: int = 0  # whole prompts, a group of layers a step


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticBatching(Batching):
    """Requests of a batch begin together and leave together."""

    mixes: bool = False
    waits_for_empty: bool = True
    holds_batch: bool = True
    returns_together: bool = True
    reserves_output: bool = True
