"""Settings of two engines over a grid: the best one on one GPU, carried to another, and tuned again."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import exp, inf, log, log1p

import numpy as np

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Ints
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.step import step
from orrery.scenario.sweep.carried import Values, carry
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery_papers.shared.setup import deployment, of_lengths

MODELS = (
    "bloom-560m",
    "bloom-1b7",
    "bloom-3b",
    "bloom-7b1",
    "codellama-7b",
    "codellama-13b",
    "codellama-34b",
    "codellama-70b",
)
"""See [unstated] models."""

DEVICES = {"a100": ("a100-sxm-40gb", (1, 2, 4, 8)), "v100": ("v100-sxm-32gb", (1, 2, 4))}
"""See [unstated] memory_per_device, num_devices."""

BATCHES = tuple(2**n for n in range(10))  # see [unstated] batches
NUM_PROBLEMS = 164
PROMPT_TOKENS, PROMPT_SPREAD = 150, 0.5  # see [unstated] lengths
LOGIT_BYTES = 6.0
"""HuggingFace keeps the logits of every position of a prompt, in 16 bits and again in 32."""

Settings = Mapping[Values, float]


def predict(paper: Paper) -> Iterator[Prediction]:
    """The mean gain of tuning again, over the models that fit both GPUs."""
    words = paper.setups["grid"]
    found = {(m, d): static(words, m, d) for m in MODELS for d in DEVICES}
    for claim, old, new in (("upgrade", "v100", "a100"), ("downgrade", "a100", "v100")):
        gains = [g for m in MODELS if (g := retuned(found[m, old], found[m, new])) is not None]
        yield Prediction(
            claim=claim,
            predicted=float(np.mean(gains)),
            because=f"best setting of {new} over that of {old} on {new}, static batches, mean of {len(gains)} models",
            differs="where memory sets the best batch, the old setting shrinks to the new best one; irregular peaks "
            "that were measured on V100 are not in its smooth kernels, and lengths and models are not written",
        )


def retuned(old: Settings, new: Settings) -> float | None:
    """Gain of the best setting over the old best one, compared as ``--carry-over`` does; None where nothing fits."""
    if not old or not new:
        return None
    there = carry(old, new)
    return None if there is None else max(new.values()) / new[there] - 1.0


@cache
def prompts() -> Ints:
    """Lengths of the problems, in their order."""
    sigma2 = log1p(PROMPT_SPREAD**2)
    drawn = stream(0, "lengths/input").standard_normal(NUM_PROBLEMS)
    return np.array([max(1, round(exp(log(PROMPT_TOKENS) - sigma2 / 2 + sigma2**0.5 * z))) for z in drawn.tolist()])


def static(words: Setup, model: str, device: str) -> Settings:
    """HuggingFace pipelines: problems a second by batch size and number of GPUs, for the settings that fit."""
    name, counts = DEVICES[device]
    answer = int(words.number("output_tokens"))
    found: dict[Values, float] = {}
    for n in counts:
        d = deployment(words, device=name, model=model, layout=f"tp1 pp{n}", engine="transformers")
        for b in BATCHES:
            if fits(d, b, answer):
                found[b, n] = NUM_PROBLEMS / static_s(d, b, answer)
    return found


def groups(batch: int) -> tuple[Ints, Ints]:
    """Sizes of the padded batches that the problems make, in their order, and the longest prompt of each."""
    starts = np.arange(0, NUM_PROBLEMS, batch)
    return np.diff(np.append(starts, NUM_PROBLEMS)), np.maximum.reduceat(prompts(), starts)


def static_s(d: Deployment, batch: int, answer_tokens: int) -> float:
    """All problems in padded batches, one after the other; layers lie on several devices, which take turns."""
    sizes, longest = groups(batch)
    none = np.zeros_like(sizes)
    first = Batch(
        prompt_sequences=sizes,
        prompt_tokens=longest,
        prompt_context_tokens=longest,
        decode_sequences=none,
        decode_context_tokens=none,
    )
    later = Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=sizes,
        decode_context_tokens=longest + answer_tokens // 2,
    )
    host_s = d.engine.step_s + d.engine.per_sequence_s * sizes
    steps_s = (answer_tokens - 1) * (step(d, later).time_s + host_s)
    return float(np.sum(step(d, first).time_s + host_s + steps_s))


def fits(d: Deployment, batch: int, answer_tokens: int) -> bool:
    """Whether the largest padded batch, its caches and the logits of all its positions fit."""
    sizes, longest = groups(batch)
    tokens = int((sizes * longest).max())
    memory = memory_of(replace(d, max_num_batched_tokens=tokens, max_num_seqs=batch, memory_utilization_frac=1.0))
    if isinstance(memory, Infeasible):
        return False
    caches = float((sizes * memory.cache.sequence_bytes(float(longest.max()) + answer_tokens)).max())
    return caches + LOGIT_BYTES * tokens * d.model.vocab_size <= memory.kv_capacity_bytes


def continuous(words: Setup, model: str, device: str) -> Settings:
    """vLLM: problems a second by the limit of sequences and the tensor degree, for the settings that fit."""
    name, counts = DEVICES[device]
    load = of_lengths(prompts(), np.full(NUM_PROBLEMS, int(words.number("output_tokens"))), inf)
    found: dict[Values, float] = {}
    for n in counts:
        for b in BATCHES:
            d = deployment(words, device=name, model=model, layout=f"tp{n}", version="0.4", max_num_seqs=b)
            out = simulate(Service(pools=(Pool(deployment=d),)), load)
            if not isinstance(out, Infeasible):
                found[b, n] = NUM_PROBLEMS / out.duration_s
    return found
