"""Every request spends a fixed time outside the engine: network, TLS, proxy, gateway, a busy front end."""

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.change import deployment_of, on_engine
from orrery.calibrate.compare.run import Run


def change(run: Run, severity: float) -> Run | None:
    """``severity`` seconds more before a request is queued."""
    if not (one := only_serving(run)):
        return None
    return on_engine(one, request_s=deployment_of(one).engine.request_s + severity)


def describe(run: Run, severity: float) -> str:
    """The time of each request."""
    return f"{text(severity, 's')} more for each request before the engine sees it"


CAUSE = Cause(
    name="network-to-client",
    title="time between client and engine (network, proxy, gateway)",
    ladder=between(0.003, 6.0, 6),
    change=change,
    describe=describe,
    shows="First tokens are late by the same time in every run, whatever the prompt or the load; tokens then come as "
    "predicted.",
    hides="The time per output token does not move. Static batches come from no client.",
    checks=(
        "curl -w '%{time_connect} %{time_starttransfer}' of /health from the client's machine, then from the server's",
        "the load generator on the server itself; connections kept open; a proxy that buffers streams",
        "metrics: vllm:time_to_first_token_seconds beside the client's TTFT",
    ),
)
