"""An experiment: one question, answered by running or training something small many times on this machine.

One experiment is one file in a ``studies`` folder that ends with ``EXPERIMENT = Experiment(...)``, found because it is
there.
"""

import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import ModuleType
from typing import Any

from orrery.base.errors import OutOfRange, ScenarioError

Row = Mapping[str, str | float | int | bool]
Progress = Callable[[int, int], None]
"""Told (done, total), in optimizer steps of all runs together."""

MAX_STEPS = 100_000


def _nothing() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One run as it was asked for: seed, steps, sizes, and the user's data and device where it reads them."""

    seed: int
    steps: int
    progress: Progress
    sizes: Any = None  # of the experiment's own class
    data: Mapping[str, Any] = field(default_factory=_nothing)  # arrays by name, or a "table"'s path; empty: drawn
    device: Any = None
    deployment: Mapping[str, Any] = field(default_factory=_nothing)  # settings; empty: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment: its question, its inputs, and the function that answers it.

    With ``sizes``, a dataclass of numbers and words with defaults, ``run`` takes a ``Run``; else seed, steps, progress.
    """

    name: str
    question: str
    run: Callable[..., tuple[Row, ...]]
    num_steps: int  # of one run, unless said otherwise
    claims: tuple[str, ...]  # papers that ask the same, as citable keys
    sizes: Any = None
    reads: tuple[str, ...] = ()  # "data" (arrays), "table" (a CSV file), "device", "deployment"
    keys: tuple[str, ...] = ()  # columns that say which row it is; the others are outcomes
    curve: tuple[str, str] | None = None  # columns along x and y of its picture

    def __call__(
        self,
        *,
        seed: int = 0,
        steps: int = 0,
        progress: Progress = lambda done, total: None,
        sizes: Mapping[str, str] | None = None,
        data: Mapping[str, Any] | None = None,
        device: Any = None,
        deployment: Mapping[str, Any] | None = None,
    ) -> tuple[Row, ...]:
        """The table of answers; the same for the same seed and steps."""
        if seed < 0 or not 0 <= steps <= MAX_STEPS:
            raise OutOfRange(
                f"experiment {self.name}: seed {seed}, steps {steps}; "
                f"write a seed from 0, and 1 to {MAX_STEPS:,} steps."
            )
        for name, given in (("data", data), ("device", device), ("deployment", deployment)):
            known = {name, "table"} if name == "data" else {name}
            if given and not known & set(self.reads):
                raise ScenarioError(f"{name}: experiment {self.name} reads none; leave it out.")
        if self.sizes is None:
            if sizes:
                raise ScenarioError(f"set: experiment {self.name} has fixed sizes; leave {next(iter(sizes))} out.")
            return self.run(seed, steps or self.num_steps, progress)
        return self.run(
            Run(
                seed=seed,
                steps=steps or self.num_steps,
                progress=progress,
                sizes=self._read(sizes or {}),
                data=data or {},
                device=device,
                deployment=deployment or {},
            )
        )

    def _read(self, written: Mapping[str, str]) -> Any:
        """The sizes with what was written in place of the defaults."""
        known = {f.name: f.type for f in fields(self.sizes)}
        found: dict[str, Any] = {}
        for name, text in written.items():
            if name not in known:
                raise ScenarioError(f"set: {self.name} has no {name!r}; write one of {', '.join(known)}.")
            found[name] = _value(f"{self.name}: {name}", known[name], text)
        return self.sizes(**found)


def _value(name: str, kind: Any, text: str) -> Any:
    if kind not in (int, float, "int", "float"):
        return text
    try:
        value = int(text) if kind in (int, "int") else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"set: {name} = {text!r}; write a {'whole ' if kind in (int, 'int') else ''}number.")
    return value


def numbers(name: str, text: str, *, least: float = 0.0, most: float = 1e6) -> tuple[float, ...]:
    """Comma-separated numbers of a size, each from ``least`` to ``most``."""
    try:
        found = tuple(float(word) for word in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(least <= x <= most for x in found):
        raise ScenarioError(f"set: {name} = {text!r}; write comma-separated numbers from {least:g} to {most:g}.")
    return found


def whole(name: str, value: int, *, least: int = 1, most: int = 100_000) -> int:
    """A whole number of a size, from ``least`` to ``most``."""
    if not least <= value <= most:
        raise ScenarioError(f"set: {name} = {value}; write {least} to {most:,}.")
    return value


def counter(progress: Progress, total: int) -> Callable[[], None]:
    """A callback for each optimizer step: it tells ``progress`` how many of ``total`` are done."""
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
