"""CloudMatrix384: DeepSeek-R1 in INT8 on one bus, an expert a die: prompts on few devices, answers on many."""

from collections.abc import Iterator
from typing import Any

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer
from orrery.scenario.estimates import estimate
from orrery.serving.estimate import Estimate

ROUTED_EXPERTS = 256
"""Experts of a layer of DeepSeek-R1, copies left out."""

OUTPUT_TOKENS = 256
"""Tokens of an answer whose middle has the set-up's context."""

MAX_BATCH = 512

DIFFERS = (
    "kernels: none was measured on this device, and constants of other vendors' devices are borrowed for its experts, "
    "its attention and the host's part of a step; the batch is the largest within the limit here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Answers within both limits, then prompts."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("decode-50ms", "decode-15ms"):
        words = claims[name].setup
        batch, found = largest_batch(words)
        yield Prediction(
            claim=name,
            predicted=found.output_tokens_per_s / found.num_devices,
            because=f"{batch} sequences a device, {found.tpot_s * 1e3:.1f} ms a token, of a pool that only decodes",
            differs=DIFFERS,
        )
    words = claims["prefill"].setup
    sequences, tokens = int(words.number("num_batch")), int(words.number("input_tokens"))
    count = int(words.number("num_devices"))
    found = pool(
        words,
        "prefill",
        batch=sequences * count,
        input_tokens=tokens,
        output_tokens=1,
        max_num_batched_tokens=sequences * tokens,
    )
    yield Prediction(
        claim="prefill",
        predicted=found.total_tokens_per_s / count,
        because=f"{sequences} prompts of {tokens} tokens on each device in {found.ttft_s * 1e3:.0f} ms",
        differs=DIFFERS,
    )


def largest_batch(words: Setup) -> tuple[int, Estimate]:
    """The most sequences a device whose mean time of a token is within the limit, or one, and that pool."""
    least, most = 1, MAX_BATCH
    while least < most:
        middle = (least + most + 1) // 2
        if decoding(words, middle).tpot_s <= words.number("slo_tpot_s"):
            least = middle
        else:
            most = middle - 1
    return least, decoding(words, least)


def decoding(words: Setup, batch: int) -> Estimate:
    """A decode pool of so many sequences a device, one guess a step where the set-up has one."""
    guesses = int(words.number("num_draft_tokens"))
    return pool(
        words,
        "decode",
        concurrency=batch * int(words.number("num_devices")),
        input_tokens=int(words.number("max_context_tokens")) - OUTPUT_TOKENS // 2,
        output_tokens=OUTPUT_TOKENS,
        max_num_seqs=MAX_BATCH,
        **({"draft": "mtp", "draft_tokens": guesses, "acceptance": words.number("acceptance_frac")} if guesses else {}),
    )


def pool(words: Setup, mode: str, **settings: Any) -> Estimate:
    """One pool by ``orrery estimate --disaggregation-mode``: attention on each device, experts over all, with copies,
    and halves of a batch that take turns at the bus."""
    count = int(words.number("num_devices"))
    found = estimate(
        model=words.word("model"),
        device=words.word("device"),
        weights=words.word("weights_format"),
        moe_backend=words.word("moe_backend"),
        overlap="nano-batches",
        dp=count,
        ep=count,
        num_redundant_experts=int(words.number("num_experts")) - ROUTED_EXPERTS,
        disaggregation_mode=mode,
        **settings,
    )
    if not isinstance(found, Answer):
        raise FactError(f"setup {words.name}: {found}; state one that fits.")
    return found.estimate
