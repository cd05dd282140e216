"""The accelerations that a node may switch on, each alone, over a plain server: static batches in 16 bits.

Every one is its own mechanism in the simulator: how batches are formed, which blocks are found in the cache, how many
tokens a step checks, in which format weights are stored and multiplied.
"""

from collections.abc import Callable, Mapping

from orrery.catalog.devices import get_device
from orrery.execution.speculation import Speculation
from orrery.predictors.acceleration.task import Task, deployment
from orrery.serving.simulation.service import Pool, Service

PLAIN = "plain"
STATIC, CHUNK_TOKENS, GUESSED_TOKENS = "request-level", 512.0, 4
NARROW = ("fp8", "int8")
"""Eight-bit formats that products may run in, the better first."""


def _plain(task: Task) -> Service:
    """One batch after the other, nothing kept."""
    return Service(pools=(Pool(deployment=task.deployment()),), policy=STATIC, prefix_caching=False)


def _continuous_batching(task: Task) -> Service:
    """Requests join and leave between steps; prompts run first, alone."""
    return Service(pools=(Pool(deployment=task.deployment()),), policy="prefill-first", prefix_caching=False)


def _chunked_prefill(task: Task) -> Service:
    """Requests join and leave between steps; prompts run in pieces beside the others' tokens."""
    return Service(
        pools=(Pool(deployment=task.deployment()),),
        policy="chunked-prefill",
        policy_knobs={"chunk_tokens": CHUNK_TOKENS},
        prefix_caching=False,
    )


def _prefix_caching(task: Task) -> Service:
    """Blocks of prompts that an earlier request left behind are not computed again."""
    return Service(pools=(Pool(deployment=task.deployment()),), policy=STATIC, prefix_caching=True)


def _speculation(task: Task) -> Service:
    """Tokens are looked up in the prompt and checked several at once."""
    guess = Speculation(kind="prompt-lookup", draft_tokens=GUESSED_TOKENS, acceptance_frac=task.guessable_frac)
    return Service(pools=(Pool(deployment=task.deployment()),), policy=STATIC, prefix_caching=False, speculation=guess)


def _quantisation(task: Task) -> Service:
    """Weights and activations in the eight-bit format that the device multiplies; weights alone where it has none."""
    native = next((f for f in NARROW if f in get_device(task.device).dense_flops_per_s), "")
    placed = deployment(task, native or "int8_weight_only", native)
    return Service(pools=(Pool(deployment=placed),), policy=STATIC, prefix_caching=False)


METHODS: Mapping[str, Callable[[Task], Service]] = {
    "continuous-batching": _continuous_batching,
    "chunked-prefill": _chunked_prefill,
    "prefix-caching": _prefix_caching,
    "speculation": _speculation,
    "quantisation": _quantisation,
}
"""The accelerations to choose from."""


def service(task: Task, method: str) -> Service:
    """The task's server with one acceleration, or ``plain``."""
    return _plain(task) if method == PLAIN else METHODS[method](task)
