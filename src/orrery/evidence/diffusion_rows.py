"""Rows of diffusion pipelines to predictions: one batch of pictures or videos each."""

from collections.abc import Iterator

import numpy as np

from orrery.base.errors import OrreryError, UnknownName
from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import get_diffusion
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.row import Row
from orrery.evidence.tables import Table
from orrery.execution.diffusion import Job
from orrery.execution.generation import constants_of, energy_spread, generate

KIND = "diffusion"

OTHER_NAMES = {
    "model_id": "model",
    "gpu_model": "device",
    "inference_steps": "num_inference_steps",
    "batch_latency_s": "latency_s",
    "avg_power_watts": "power_w",
}
"""Columns of ML.ENERGY's table of diffusion models, and what they are called here."""

EITHER = {
    "height": ("image_height", "video_height"),
    "width": ("image_width", "video_width"),
    "energy_j_per_item": ("energy_per_image_joules", "energy_per_video_joules"),
}
"""Columns of which each row fills one."""


def translated(table: Table) -> Table:
    """A table of ML.ENERGY's in the columns of a measured one; any other as it is."""
    if "kind" in table.columns or not {"model_id", "batch_latency_s", "inference_steps"} <= table.columns.keys():
        return table
    columns = {OTHER_NAMES.get(c, c): v for c, v in table.columns.items()}
    for name, sources in EITHER.items():
        found = [table.columns[s] for s in sources if s in table.columns]
        columns[name] = ["".join(cells) for cells in zip(*found, strict=True)]
    return Table(table.name, {"kind": [KIND] * len(table), **columns})


def job_of(row: Row) -> Job:
    """The batch that a row describes; what it leaves out is the pipeline's default, on one device."""
    model = get_diffusion(row.word("model"))
    return Job(
        model=model,
        device=get_device(row.word("device")),
        height=_count(row, "height", model.height),
        width=_count(row, "width", model.width),
        num_frames=_count(row, "num_frames", model.num_frames),
        num_inference_steps=_count(row, "num_inference_steps", model.num_inference_steps),
        batch=_count(row, "batch_size", 1),
        ulysses=_count(row, "ulysses_degree", 1),
        ring=_count(row, "ring_degree", 1),
    )


def _count(row: Row, column: str, default: int) -> int:
    return int(float(row.word(column))) if row.word(column) else default


def rows_of(table: Table, rows: Rows) -> Iterator[tuple[int, Row]]:
    """Each of those rows with its number."""
    for number in map(int, rows):
        yield number, Row({c: v[number] for c, v in table.columns.items()})


def answer(table: Table, rows: Rows, answers: Answers) -> None:
    """Predict latency, power and joules of every row."""
    for number, row in rows_of(table, rows):
        try:
            job = job_of(row)
            found = generate(job)
        except UnknownName as error:
            answers.decline([number], f"unknown {error.kind} {error.name}")
            continue
        except (OrreryError, ValueError) as error:
            answers.decline([number], str(error))
            continue
        latency, joules = constants_of(job.device).spread, energy_spread(job.device)
        one = np.array([number])
        for metric, value, spread in (
            ("latency_s", found.latency_s, latency),
            ("power_w", found.power_w, None),
            ("energy_j_per_item", found.energy_j / job.batch, joules),
        ):
            answers.predict(metric, one, np.array([value]), spread)


__all__ = ["KIND", "answer", "job_of", "rows_of", "translated"]
