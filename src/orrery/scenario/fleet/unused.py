"""Notes on what is written of a queue's order and makes no difference to it."""

from orrery.scenario.fleet.read import FleetInputs
from orrery.serving.requests import Requests
from orrery.serving.simulation.rules import QUEUES, knobs_of, values_of

FIRST_COME = "fcfs"


def order_notes(inputs: FleetInputs, requests: Requests) -> tuple[str, ...]:
    """Tell of tenants' priorities that the queue does not read, and of a queue for clients where there are none."""
    name, notes = inputs.scenario.queue or FIRST_COME, list[str]()
    with_priority = [t.name or f"tenant {k}" for k, t in enumerate(inputs.tenants, start=1) if t.priority is not None]
    if with_priority and not _reads(name, "priority"):
        notes.append(
            f'tenant {with_priority[0]}: priority: the queue {name} does not read it; write queue = "priority"'
        )
    if not requests.client.size and _reads(name, "client_tag"):
        notes.append(f"queue: {name} shares among clients, and all requests are of one; write [[tenant]]s")
    return tuple(notes)


def _reads(queue: str, argument: str) -> bool:
    """Whether the rank of a request changes with one of the rule's arguments."""
    technique = QUEUES.get(queue)
    ranks = [
        technique.rule(
            **{
                "entered_s": 1.0,
                "priority": 1.0,
                "input_tokens": 100.0,
                "output_tokens": 10.0,
                "client_tag": 1.0,
                "knobs": values_of(knobs_of(technique, {})),
            }
            | {argument: value}
        )
        for value in (1.0, 2.0)
    ]
    return ranks[0] != ranks[1]
