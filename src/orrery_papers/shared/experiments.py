"""Set-ups asked of orrery experiment."""

from collections.abc import Mapping

from orrery.base.experiment import Row
from orrery.scenario.experiment import run_experiment


def rows_of(name: str, sizes: Mapping[str, float | str], *, device: str | None = None) -> tuple[Row, ...]:
    """The rows of an experiment with those sizes."""
    written = [f"{key}={value if isinstance(value, str) else f'{value:.10g}'}" for key, value in sizes.items()]
    return run_experiment(name, device=device, sizes=written).rows
