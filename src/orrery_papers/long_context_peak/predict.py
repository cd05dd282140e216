"""Long contexts at peak rates: the four costs of the example's two lengths, and under every way of keeping less."""

from collections.abc import Iterator
from typing import Any

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.execution.long_context import LongContext
from orrery.scenario.estimates import estimate
from orrery.scenario.long_contexts import LongContextAnswer
from orrery_papers.shared.setup import deployment

OPTIONS: dict[str, dict[str, Any]] = {
    "half the layers or heads": {"kv_kept_bytes": 0.5},
    "half the tokens": {"kv_kept_tokens": 0.5},
    "4-bit numbers": {"kv_kept_bytes": 0.25},
}
"""Layer, head, token and width: see [unstated] compression."""

ANSWER_TOKENS = 250  # see [unstated] answer_length

DIFFERS = "the paper divides by peak rates, where kernels as measured are taken here"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Prompts, answers and users of both lengths; lengths that the paper studies or aims at are its choice."""
    setup = paper.setups["yi-34b-50k"]
    yield Prediction(
        claim="model-size",
        predicted=float(deployment(setup, layout="tp1").model.num_parameters),
        because="parameters of the published configuration",
    )
    rows = table(paper)
    for name, costs in (("4k", rows["4000 tokens"]), ("50k", rows["50000 tokens"])):
        yield Prediction(
            claim=f"prompt-{name}",
            predicted=costs.prefill_s,
            because=f"one prompt of {costs.context_tokens} tokens alone",
            differs=DIFFERS,
        )
        yield Prediction(
            claim=f"answer-{name}",
            predicted=ANSWER_TOKENS * costs.one_decode_step_s,
            because=f"{ANSWER_TOKENS} steps that read the weights and {costs.kv_bytes / 1e9:.2f} GB of cache",
            differs=f"{DIFFERS}; and the length of the answer, which was not found",
        )
        yield Prediction(
            claim=f"users-{name}",
            predicted=float(costs.concurrency),
            because=f"caches of {costs.kv_bytes / 1e9:.2f} GB in what weights and activations leave of 80 GB",
            differs="activations and the framework's own memory, which peak rates leave out",
        )


def table(paper: Paper) -> dict[str, LongContext]:
    """The four costs at 4K and at 50K, and at 50K under every way of keeping less, from ``orrery estimate``."""
    lengths = [int(paper.setups[n].number("input_tokens")) for n in ("yi-34b-4k", "yi-34b-50k")]
    setup = paper.setups["yi-34b-50k"]
    found: dict[str, LongContext] = {}
    for name, option in {"all": {}, **OPTIONS}.items():
        answer = estimate(
            model=setup.word("model"),
            device=setup.word("device"),
            tp=int(setup.number("num_devices")),
            gpu_memory_utilization=1.0,
            max_model_len=max(lengths),
            context_lengths=",".join(map(str, lengths)),
            **option,
        )
        assert isinstance(answer, LongContextAnswer)
        for row in answer.rows:
            key = f"{row.costs.context_tokens} tokens" + (f", {name}" if row.compression != "all" else "")
            if row.compression == "all" or row.costs.context_tokens == max(lengths):
                found.setdefault(key, row.costs)
    return found
