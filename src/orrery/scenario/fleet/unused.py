"""Notes on what is written of a fleet and makes no difference to it."""

from dataclasses import replace

from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.levers.found import of_service
from orrery.scenario.levers.idle import NOTED_OF_RUNS, idle_notes
from orrery.serving.requests import Requests
from orrery.serving.simulation.rules import QUEUES, knobs_of, values_of
from orrery.serving.simulation.service import Service

FIRST_COME = "fcfs"
ARGUMENTS = ("entered_s", "priority", "input_tokens", "output_tokens", "client_tag")
"""Arguments of a queue's rule beside its knobs."""


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


def unused_notes(inputs: FleetInputs, requests: Requests, service: Service) -> tuple[str, ...]:
    """Tell of settings of the deployment, of orders, and of zones, that change nothing in this fleet."""
    order, given = order_notes(inputs, requests), inputs.scenario.written()
    if any(note.startswith("queue") for note in order):
        given.pop("queue")
    found = of_service(service, given)
    if inputs.tenants:
        found = replace(found, requests_alike=False)
    notes = list(idle_notes(given, found, NOTED_OF_RUNS))
    if inputs.top.zones and not (inputs.outages or inputs.faults or inputs.top.survive):
        notes.append("zones: nothing is lost; write [[outage]] or [faults] for the loss of one")
    return (*order, *notes)


def _reads(queue: str, argument: str) -> bool:
    """Whether the rank of a request changes with one of the rule's arguments."""
    technique = QUEUES.get(queue)
    ranks = [
        technique.rule(**dict.fromkeys(ARGUMENTS, 1.0) | {"knobs": values_of(knobs_of(technique, {})), argument: value})
        for value in (1.0, 2.0)
    ]
    return ranks[0] != ranks[1]
