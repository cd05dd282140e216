"""Published workloads by name: mean lengths and limits of a benchmark's scenario, one file each in ``facts/workloads``.

What the publisher does not state is left out, and a user who needs it is asked for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, read_facts

FOLDER = Path(__file__).parent / "facts" / "workloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedWorkload:
    """A benchmark's scenario: the model that it runs, and facts of its traffic."""

    name: str
    title: str
    model: str
    facts: Mapping[str, Fact]

    def settings(self) -> dict[str, Any]:
        """The settings of a scenario that it stands for: whole tokens, and limits on the 99th percentile."""
        found: dict[str, Any] = {"model": self.model}
        for side in ("input", "output"):
            if fact := self.facts.get(f"{side}_mean_tokens"):
                found[f"{side}_tokens"] = round(float(fact.value))
        if fact := self.facts.get("num_requests"):
            found["num_requests"] = int(fact.value)
        limits = [f"p99_{m}:{float(f.value) * 1e3:g}" for m in ("ttft", "tpot") if (f := self.facts.get(f"{m}_p99_s"))]
        return found | ({"slo": limits} if limits else {})


def workload_names() -> tuple[str, ...]:
    """Every published workload with a fact file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def get_workload(name: str) -> PublishedWorkload:
    """The workload of that name; UnknownName with the nearest where there is none."""
    known = {n.casefold(): n for n in workload_names()}
    if (found := known.get(name.casefold().replace("_", "-"))) is None:
        raise UnknownName("workload", name, workload_names())
    facts, rest = read_facts(FOLDER / f"{found}.toml")
    return PublishedWorkload(name=found, title=rest["title"], model=rest["model"], facts=facts)
