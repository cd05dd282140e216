"""Published serving runs as deployments, workloads and what was measured; and how far off we are on each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import numpy as np
from exclusions import excluded, read_exclusions

from orrery.base.errors import OrreryError
from orrery.catalog.engines import ASSUMED_HOST, FOLDER
from orrery.catalog.named_files import read_file
from orrery.evidence.campaign import campaign_of
from orrery.evidence.metrics import base_metric
from orrery.evidence.row import Row
from orrery.evidence.serving_pools import read_service
from orrery.evidence.serving_rows import beats_bound, metric_of, predict
from orrery.evidence.serving_simulated import Ran
from orrery.evidence.split import FIT, sides
from orrery.evidence.tables import read_table
from orrery.execution.batch import Batch, Part, memory_ratio_of
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.shard import shard
from orrery.execution.step import Step, step
from orrery.execution.surface import Surface, surface_of
from orrery.execution.surface._kernel import CHANNELS, MEMORY, NETWORK, TIME
from orrery.serving import clock
from orrery.serving.estimate import Estimate
from orrery.serving.extrapolation import kind_of_run
from orrery.serving.simulation import assemble
from orrery.serving.simulation.service import Service
from orrery.serving.workload import Workload

LATER = Path(__file__).resolve().parents[2] / "docs" / "data" / "later-serving.csv"
"""Runs of the repository's own table: one source, which has no part in ``scorecard_unseen.py`` any more. All of its
rows may be fitted: what tests a prediction of them is leaving their campaigns out."""

EXCLUDED = Path(__file__).resolve().parents[1] / "excluded.toml"

METRICS = {
    "static": ("latency_s", "ttft_s", "tpot_s"),
    "offline": ("output_tokens_per_s", "ttft_s", "tpot_s"),
    "closed": ("tpot_s", "ttft_s", "output_tokens_per_s"),
    "open": ("tpot_s", "ttft_s", "latency_s"),
}
"""What is fitted and scored in each mode: one number for each thing measured, not its arithmetic consequences."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """One row: what was run, what was measured, on which side it stands."""

    service: Service
    workload: Workload
    values: dict[str, float]
    side: str
    campaign: str
    model: str
    excluded: str  # why it is only reported; empty where it counts
    cells: Mapping[str, str]

    @property
    def deployment(self) -> Deployment:
        """That which decodes."""
        return self.service.pools[-1].deployment

    def number(self, column: str) -> float:
        """A measured cell; 0 where it is blank."""
        return Row(cells=self.cells).number(column)

    def with_constants(self, constants: Mapping[str, float] | None) -> Service:
        """The service with other constants of its engine, but for those that the engine's own file states."""
        if constants is None:
            return self.service
        stated = stated_constants(self.deployment.engine.name)
        fitted = {name: value for name, value in constants.items() if name not in stated}
        pools = tuple(
            replace(p, deployment=replace(p.deployment, engine=replace(p.deployment.engine, **fitted)))
            for p in self.service.pools
        )
        return replace(self.service, pools=pools)


@cache
def stated_constants(engine: str) -> frozenset[str]:
    """Constants that an engine's own file states, which no fit to runs replaces."""
    return frozenset(key for table in read_file(FOLDER, engine)["version"] for key in table if key in ASSUMED_HOST)


def kind_of(row: Measured) -> str:
    """What the intervals of a row go by: the mode, separate pools, experts."""
    return kind_of_run(row.deployment, row.workload.mode, len(row.service.pools))


def read_rows(data: Path) -> list[Measured]:
    """Every serving row that can be answered and does not beat the datasheet."""
    rows: list[Measured] = []
    exclusions = read_exclusions(EXCLUDED)
    for path in (*sorted((data / "serving").glob("*.csv")), LATER):
        table = read_table(path)
        for number, side in enumerate(sides(table, "serving") if path != LATER else [FIT] * len(table)):
            row = Row(cells={c: v[number] for c, v in table.columns.items()})
            try:
                service, workload = read_service(row)
            except OrreryError:
                continue
            values = {m: row.number(m) for m in METRICS[workload.mode] if row.word(m)}
            if values and not beats_bound(row, service.pools[0].deployment, workload):
                rows.append(
                    Measured(
                        service=service,
                        workload=workload,
                        values=values,
                        side=str(side),
                        campaign=campaign_of(row),
                        model=row.word("model"),
                        excluded=excluded(row, exclusions),
                        cells=row.cells,
                    )
                )
    return rows


def remember_steps() -> None:
    """Cost each step's kernels once: the constants fitted here only add to them, so every later guess is cheap."""
    known: dict[tuple[object, ...], tuple[Step, np.ndarray, np.ndarray]] = {}

    def remembered(deployment: Deployment, batch: Batch) -> Step:
        sizes = (np.asarray(getattr(batch, f.name)).tobytes() for f in fields(batch))
        key = (
            id(deployment.model),
            id(deployment.cluster),
            deployment.layout,
            deployment.formats,
            deployment.backends,
            deployment.draft_head,
            deployment.mode,
            deployment.engine.name,
            deployment.engine.version,
            *sizes,
        )
        if key not in known:
            plain = replace(deployment.engine, per_layer_s=0.0, memory_ratio=1.0, compute_ratio=1.0)
            found = step(replace(deployment, engine=plain), batch)
            twice = replace(deployment.engine, memory_ratio=2.0)  # of what it scales, as long again
            timed = [p for p in found.parts if p.once is not None]
            is_compute = [p.once.compute_s > p.once.memory_s for p in timed]
            known[key] = (
                found,
                _total(timed, [~x * (memory_ratio_of(p, twice) - 1.0) for p, x in zip(timed, is_compute, strict=True)]),
                _total(timed, is_compute),
            )
        bare, memory_s, compute_s = known[key]
        more_s = deployment.engine.per_layer_s * deployment.model.num_layers * (batch.num_tokens > 0)
        more_s = more_s + (deployment.engine.memory_ratio - 1.0) * memory_s
        more_s = more_s + (deployment.engine.compute_ratio - 1.0) * compute_s
        return replace(bare, time_s=bare.time_s + more_s, stage_s=bare.stage_s + more_s / deployment.layout.pp)

    clock.step = remembered


def _total(parts: Sequence[Part], shares: Sequence[np.ndarray]) -> np.ndarray:
    """Seconds of all parts together, of each its share."""
    return np.sum([p.time_s * share for p, share in zip(parts, shares, strict=True)], axis=0)


def remember_surfaces() -> None:
    """The same for the tables that the simulator reads: gaps and scales are put on top of what was costed without."""
    known: dict[tuple[object, ...], Surface] = {}

    def remembered(deployment: Deployment, **sizes: int) -> Surface:
        engine = deployment.engine
        if not engine.scales_measured:  # the tables do not say whose kernels take their memory-bound seconds
            return surface_of(deployment, **sizes)
        key = (
            id(deployment.model),
            id(deployment.cluster),
            deployment.layout,
            deployment.formats,
            deployment.backends,
            deployment.draft_head,
            deployment.mode,
            engine.name,
            engine.version,
            *sizes.values(),
        )
        if key not in known:
            plain = replace(engine, per_layer_s=0.0, memory_ratio=1.0, compute_ratio=1.0)
            known[key] = surface_of(replace(deployment, engine=plain), **sizes)
        gap_s = engine.per_layer_s * shard(deployment).num_layers
        return Surface(
            **{
                name: _slower(table, engine.memory_ratio, engine.compute_ratio, gap_s if "tokens" in name else 0.0)
                if table.shape[-1] == CHANNELS and "nodes" not in name
                else table
                for name, table in known[key]._asdict().items()
            }
        )

    assemble.surface_of = remembered


def _slower(table: np.ndarray, memory_ratio: float, compute_ratio: float, gap_s: float) -> np.ndarray:
    """A table whose memory-bound and compute-bound seconds take so many times as long, each row after a gap."""
    out = table.copy()
    compute_s = table[..., TIME] - table[..., MEMORY] - table[..., NETWORK]
    out[..., TIME] += (memory_ratio - 1.0) * table[..., MEMORY] + (compute_ratio - 1.0) * compute_s
    if gap_s:
        out[1:, TIME] += gap_s
    return out


def predicted_values(row: Measured, constants: Mapping[str, float] | None = None) -> dict[str, float]:
    """What is predicted of each measured value of a row; nothing where it is said not to fit."""
    answer = answer_of(row, constants)
    return {m: value_of(row, answer, m) for m in row.values} if answer is not None else {}


def answer_of(row: Measured, constants: Mapping[str, float] | None = None) -> Estimate | Ran | None:
    """The row predicted; None where it cannot be."""
    try:
        found = predict(row.with_constants(constants), row.workload)
    except OrreryError:
        return None
    return None if isinstance(found, Infeasible) else found


def value_of(row: Measured, found: Estimate | Ran, metric: str) -> float:
    """One metric of an answer."""
    if isinstance(found, Ran):
        return found.value(metric)
    return metric_of(found, base_metric(metric), row.deployment, row.workload)[0]
