"""The question: what techniques would do to a deployment, each by itself; all of them, ranked by what they bring."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.scenario.levers.lever import Lever
from orrery.scenario.levers.registry import get_lever, levers
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.setting import DEPLOYMENTS
from orrery.scenario.what_if.compare import Comparer
from orrery.scenario.what_if.metrics import Metric
from orrery.scenario.what_if.result import WhatIf

EVERY = "all"
"""In place of a technique's name: every one that is a choice of whoever runs the deployment."""

_ORDER = ("makes it fit", "changes", "no effect", "infeasible", "does not apply")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhatIfAnswer:
    """A result for each technique: as asked, or ranked by what they bring."""

    results: tuple[WhatIf, ...]
    metric: Metric
    is_ranked: bool
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """``{"results": [...], "metric", "notes"}``."""
        return {"results": [r.to_json() for r in self.results], "metric": self.metric.name, "notes": list(self.notes)}


@typed
def what_if(
    techniques: str | Sequence[str] = EVERY,
    scenario: Scenario | None = None,
    /,
    *,
    metric: str = "",
    break_even: Sequence[str] | None = None,
    is_simulated: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> WhatIfAnswer:
    """Effects of techniques on a deployment: both sides, their difference, and the break-even.

    Settings are those of a scenario file; given beside a scenario they override it. ``techniques`` is a name, several,
    or "all", which ranks by ``metric`` (ttft, tpot, latency, throughput, cost, energy, memory, step_time, run_time).
    ``break_even`` names inputs; without it, those that matter are tried for techniques asked by name, and none for all.
    ``is_simulated`` simulates where a closed form would answer too. ``on_progress`` is told (done, total).
    """
    refuse_foreign("what-if", settings, DEPLOYMENTS)
    comparer = Comparer(merged(scenario, settings), is_simulated=is_simulated)
    by = comparer.metric(metric)
    names = [techniques] if isinstance(techniques, str) else list(dict.fromkeys(techniques))
    is_all = names == [EVERY]
    if not names or (EVERY in names and not is_all):
        raise ScenarioError('techniques: write names, such as "fp8-weights", or "all" alone.')
    requested = _every(is_training=comparer.is_training) if is_all else [get_lever(name) for name in names]
    inputs = break_even if break_even is not None else () if is_all else None
    results = list[WhatIf]()
    on_progress(0, len(requested))
    for done, lever in enumerate(requested, start=1):
        results.append(comparer.what_if(lever, by, inputs))
        on_progress(done, len(requested))
    if is_all:
        results.sort(key=lambda r: (_ORDER.index(r.outcome), -r.gain, _worse(r), r.technique))
    return WhatIfAnswer(results=tuple(results), metric=by, is_ranked=is_all, notes=_notes(results, comparer.scenario))


def _worse(result: WhatIf) -> float:
    """The figure that the deployment has with a technique that makes it fit, less where it is better."""
    if result.outcome != "makes it fit" or result.having is None:
        return 0.0
    value = result.having.figures.get(result.metric.name, inf)
    return -value if result.metric.is_rate else value


def _every(*, is_training: bool) -> list[Lever]:
    """Every technique that is a choice of whoever runs a deployment of that kind."""
    return [x for x in levers().values() if x.questions and x.is_choice and x.is_training == is_training]


def _notes(results: Sequence[WhatIf], scenario: Scenario) -> tuple[str, ...]:
    """Assumptions about the deployment: the notes of the side that is the deployment as it is, or of the first that
    has any.
    """
    own = scenario.written()
    sides = [side for r in results for side in (r.without, r.having) if side is not None]
    sides.sort(key=lambda side: (dict(side.settings) != own, not side.figures))
    return tuple(dict.fromkeys(sides[0].notes)) if sides else ()
