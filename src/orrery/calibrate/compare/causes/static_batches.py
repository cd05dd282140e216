"""A batch starts together and ends with its longest answer: no request joins or leaves in between."""

from collections.abc import Sequence
from dataclasses import replace

from orrery.calibrate.compare.cause import Cause, only_serving
from orrery.calibrate.compare.run import Run

POLICY = "request-level"


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """Return the only severity: batching is static, or it is not."""
    return (1.0,)


def change(run: Run, severity: float) -> Run | None:
    """Request-level batching, with prompts padded to the longest of the batch."""
    one = only_serving(run)
    if one is None or one.workload.mode == "static" or len(one.service.pools) > 1:
        return None
    return replace(one, service=replace(one.service, policy=POLICY))


def describe(run: Run, severity: float) -> str:
    """There is no degree of it."""
    return "a batch starts together and ends with its last answer"


CAUSE = Cause(
    name="static-batches",
    title="static batches: requests neither join nor leave a running batch",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="First tokens wait for the batch before to end, so they take about as long as whole answers; more so where "
    "lengths differ.",
    hides="One request at a time comes out as predicted.",
    checks=(
        "the server: in-flight (continuous) batching on? TensorRT-LLM gpt_model_type=inflight_fused_batching",
        "a home-made loop around model.generate()? use an engine, or vLLM's AsyncLLM",
    ),
    is_stepwise=True,
)
