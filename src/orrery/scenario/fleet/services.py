"""Several services in one file: each with its model, traffic, pools and autoscaler, and what all of them cost together.

``[[service]]`` tables hold what a FLEET.toml of one service does; keys at the top of the file are of every service that
does not say its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.tasks import LostTask, results
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.jobs import peak_power_w

Ask = Callable[[Mapping[str, Any], str], FleetAnswer | InfeasibleAnswer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServicesAnswer:
    """Services side by side, by name."""

    services: Mapping[str, FleetAnswer]

    @property
    def more(self) -> Mapping[str, Any]:
        """Figures that are of all services together, beside their sums."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of every service, with its name."""
        return tuple(f"{name}: {note}" for name, answer in self.services.items() for note in answer.notes)

    @property
    def is_met(self) -> bool | None:
        """Whether every service meets its SLOs; None where none has any."""
        found = [a.is_met for a in self.services.values() if a.is_met is not None]
        return all(found) if found else None

    @property
    def peak_power_w(self) -> float:
        """The most that devices and hosts of all services draw at once, as a mean between two samples."""
        return peak_power_w(*(a.run for a in self.services.values()))

    def total(self, value: str) -> float:
        """A figure of all services together."""
        return float(sum(getattr(a, value) for a in self.services.values()))

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        return to_json(
            {
                "slo_is_met": self.is_met,
                "num_requests": int(self.total("num_sent")),
                "cost_usd": self.total("cost_usd"),
                "output_tokens": int(self.total("output_tokens")),
                "energy_j": sum(a.run.energy_j for a in self.services.values()),
                "host_energy_j": sum(a.run.host_energy_j for a in self.services.values()),
                "peak_power_w": self.peak_power_w,
                **self.more,
                "services": {name: answer.to_json() for name, answer in self.services.items()},
                "notes": list(self.notes),
            }
        )


def services_of(
    settings: Mapping[str, Any], where: str, ask: Ask, *, jobs: int = 1, ray: str = ""
) -> ServicesAnswer | InfeasibleAnswer:
    """Answer every service of a file, each in a process or on a machine of its own where there are several; the first
    one that is infeasible is the answer."""
    todo = service_settings(settings, where)
    if jobs <= 1 and not ray:
        answers = ((name, ask(own, place)) for name, (own, place) in todo.items())
    else:
        answers = _shared_out(todo, ask, jobs, ray)
    found: dict[str, FleetAnswer] = {}
    for name, answer in answers:
        if isinstance(answer, InfeasibleAnswer):
            return answer
        found[name] = answer
    return ServicesAnswer(services=found)


def service_settings(settings: Mapping[str, Any], where: str) -> dict[str, tuple[dict[str, Any], str]]:
    """The settings of every service by its name, and where they stand."""
    raw = settings["service"]
    if not isinstance(raw, list) or not raw:
        raise ScenarioError(f"{where or 'fleet'}: service: write each as [[service]].")
    shared = {key: value for key, value in settings.items() if key != "service"}
    if given := [name for name in ("steady", "survive") if shared.get(name)]:
        raise ScenarioError(f"{given[0]}: is about one service; leave out [[service]].")
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for k, table in enumerate(cast("list[dict[str, Any]]", raw), start=1):
        name = str(table.get("name", f"service {k}"))
        if name in found:
            raise ScenarioError(f"service: {name!r} is there twice; give each a name of its own.")
        own = {key.replace("-", "_"): value for key, value in table.items() if key != "name"}
        found[name] = ({**shared, **own}, f"{where or 'fleet'}: [[service]] {k}")
    return found


def _shared_out(
    todo: Mapping[str, tuple[dict[str, Any], str]], ask: Ask, jobs: int, ray: str
) -> Iterator[tuple[str, FleetAnswer | InfeasibleAnswer]]:
    """Yield every answer in the order of the file."""
    found = dict(results(ask, todo, jobs=jobs, ray=ray))
    for name in todo:
        answer = found[name]
        if isinstance(answer, LostTask):
            raise ScenarioError(f"service {name!r}: {answer.message}")
        yield name, answer
