"""The front end takes long for every prompt token: tokenizer, chat template, detokenizer, logging of prompts."""

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.change import deployment_of, on_engine
from orrery.calibrate.compare.run import Run


def change(run: Run, severity: float) -> Run | None:
    """``severity`` seconds more for each prompt token before the request is queued."""
    if not (one := only_serving(run)):
        return None
    return on_engine(one, request_s=deployment_of(one).engine.request_s + severity * one.workload.input_tokens)


def describe(run: Run, severity: float) -> str:
    """The time of a thousand tokens."""
    return f"{text(1000 * severity, 's')} more for each 1000 prompt tokens before the engine sees them"


CAUSE = Cause(
    name="front-end",
    title="a slow front end (tokenizer, template)",
    ladder=between(3e-6, 3e-3),
    change=change,
    describe=describe,
    shows="First tokens are late in proportion to the prompt, whatever the load; tokens then come as predicted.",
    hides="Short prompts, and the time per output token, come out as predicted. Static batches do not pass it.",
    checks=(
        "a slow (Python) tokenizer: tokenizer_mode=slow, use_fast=False; --api-server-count; --disable-log-requests",
        "top: the API server's process at 100 %; prompts sent as token ids for comparison",
        "a cold start in the mean: leave out the first requests (--num-warmups)",
    ),
)
