"""More prompt tokens are computed than were asked for: padding to a longest prompt, templates, images.

The traffic's prompts are s times as long; rates count the tokens that were asked for.
"""

from dataclasses import replace

from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.run import Run


def change(run: Run, severity: float) -> Run | None:
    """Prompts ``severity`` times as long."""
    if not (one := only_serving(run)):
        return None
    return replace(one, workload=replace(one.workload, input_tokens=one.workload.input_tokens * severity))


def describe(run: Run, severity: float) -> str:
    """Tokens computed beside tokens asked for."""
    requested = one.requested.input_tokens if (one := only_serving(run)) else 0.0
    return (
        f"prompts of {requested * severity:,.0f} tokens computed where {requested:,.0f} were asked for "
        f"({severity:.2g} x)"
    )


CAUSE = Cause(
    name="padded-batches",
    title="padding: more prompt tokens than were asked for",
    ladder=between(1.1, 8.0),
    change=change,
    describe=describe,
    shows="First tokens are late in proportion to the prompt; answers slow down where prompts share their steps, and "
    "the cache fills early.",
    hides="Runs with short prompts and long answers come out as predicted.",
    checks=(
        "metrics: vllm:prompt_tokens_total over the run beside the client's count (chat template, images)",
        "padding=True or max_length in the tokenizer's call; static shapes of a compiled model; bucket sizes on TPUs",
        "the spread of prompt lengths in one batch: longest / mean",
    ),
)
