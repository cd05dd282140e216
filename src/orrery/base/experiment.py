"""An experiment: one question, answered by running or training something small many times on this machine.

One experiment is one file in a ``studies`` folder that ends with ``EXPERIMENT = Experiment(...)``, found because it is
there.
"""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from orrery.base.errors import OutOfRange

Row = Mapping[str, str | float | int | bool]
Progress = Callable[[int, int], None]
"""Told (done, total), in optimizer steps of all runs together."""

MAX_STEPS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is asked, and how it is answered."""

    name: str
    question: str
    run: Callable[[int, int, Progress], tuple[Row, ...]]  # seed, optimizer steps of one run, progress
    num_steps: int  # of one run, unless said otherwise
    claims: tuple[str, ...]  # papers that ask the same, as citable keys

    def __call__(
        self, *, seed: int = 0, steps: int = 0, progress: Progress = lambda done, total: None
    ) -> tuple[Row, ...]:
        """The table of answers; the same for the same seed and steps."""
        if seed < 0 or not 0 <= steps <= MAX_STEPS:
            raise OutOfRange(
                f"experiment {self.name}: seed {seed}, steps {steps}; "
                f"write a seed from 0, and 1 to {MAX_STEPS:,} steps."
            )
        return self.run(seed, steps or self.num_steps, progress)


def counter(progress: Progress, total: int) -> Callable[[], None]:
    """What each optimizer step calls: tells ``progress`` how many of ``total`` are done."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    return step


def experiments_in(package: ModuleType) -> dict[str, Experiment]:
    """Every experiment of a ``studies`` folder, by name."""
    found = [import_module(f"{package.__name__}.{m.name}").EXPERIMENT for m in pkgutil.iter_modules(package.__path__)]
    return {e.name: e for e in sorted(found, key=lambda e: e.name)}
