"""A pool of prefill or of decode alone, as a scenario asks for it."""

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import Scenario
from orrery.serving.workload import Pool


def pool_of(scenario: Scenario) -> Pool:
    """The part of a request's work that the deployment does."""
    other = next((name for name in ("users", "reasoning") if getattr(scenario, name) is not None), "")
    match scenario.disaggregation_mode:
        case None:
            return "both"
        case _ if other:
            raise ScenarioError(f"{other}: is answered by both pools together; leave disaggregation_mode out.")
        case "prefill" | "decode" as pool:
            return pool
        case other:
            raise ScenarioError(f"disaggregation_mode: got {other!r}; write prefill or decode.")


def pool_notes(pool: Pool) -> tuple[str, ...]:
    """Notes on an estimate of one pool alone."""
    if pool == "both":
        return ()
    text = {
        "prefill": "prompts are read and each answer ends with its first token",
        "decode": "requests come with their cache and first token, and answers are one token shorter here; the time to "
        "the first token is that from the cache's arrival to the first one made here",
    }[pool]
    return (
        f"disaggregation_mode: {pool}: {text}. How the cache comes over is in neither (orrery simulate "
        "--prefill-replicas times both pools together)",
    )
