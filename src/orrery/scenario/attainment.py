"""Whether a run met its objectives: enough requests within every limit, and every percentile within its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.scenario.answer import to_json
from orrery.scenario.objectives import percentile_limits
from orrery.scenario.schema import Scenario
from orrery.serving.metrics import Summary
from orrery.serving.metrics.latencies import latencies
from orrery.serving.metrics.percentiles import PercentileFound, percentiles_found
from orrery.serving.simulation.result import Simulated

DEFAULT_ATTAINMENT_FRAC = 0.9
"""Share of the requests that must be within all limits; the share that DistServe (OSDI 2024) asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """Attainment of a run's objectives."""

    needed_frac: float
    attained_frac: float | None  # of the requests sent, within all limits at once; None where none holds for each
    attained_by_metric: Mapping[str, float]
    percentiles: tuple[PercentileFound, ...]

    @property
    def has_objectives(self) -> bool:
        """Whether anything was asked."""
        return self.attained_frac is not None or bool(self.percentiles)

    @property
    def is_met(self) -> bool:
        """Whether all that was asked holds."""
        enough = self.attained_frac is None or self.attained_frac >= self.needed_frac
        return enough and all(p.is_met for p in self.percentiles)

    @property
    def worst(self) -> str:
        """The objective that lacks the largest share of the requests; empty without objectives."""
        shortfall = {name: self.needed_frac - share for name, share in self.attained_by_metric.items()}
        shortfall |= {p.limit.name: p.limit.share_frac - p.attained_frac for p in self.percentiles}
        return max(shortfall, key=lambda name: shortfall[name], default="")

    def to_json(self) -> dict[str, Any]:
        """``slo_is_met`` and ``slo_percentiles``; null without objectives."""
        each = {
            p.limit.name: {
                "limit_s": p.limit.limit_s,
                "value_s": p.value_s,
                "attained_frac": p.attained_frac,
                "is_met": p.is_met,
            }
            for p in self.percentiles
        }
        return {
            "slo_is_met": self.is_met if self.has_objectives else None,
            "slo_percentiles": to_json(each) if each else None,
        }


def attained(scenario: Scenario, run: Simulated, figures: Summary, warmup_frac: float = 0.0) -> Attained:
    """The objectives of ``scenario`` held against a run and its figures, which leave out the same warm-up."""
    good, limits = figures.goodput, percentile_limits(scenario.slo)
    return Attained(
        needed_frac=needed_frac(scenario),
        attained_frac=good.attained_frac if good else None,
        attained_by_metric=good.attained_by_metric if good else {},
        percentiles=percentiles_found(latencies(run, warmup_frac), limits) if limits else (),
    )


def needed_frac(scenario: Scenario) -> float:
    """The share of the requests that must be within all limits."""
    return DEFAULT_ATTAINMENT_FRAC if scenario.attainment is None else scenario.attainment
