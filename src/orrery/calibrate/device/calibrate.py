"""``orrery calibrate device``: measure this machine, and write it down as a device."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.sources import Source
from orrery.base.user_file import user_path
from orrery.calibrate.device.answer import DeviceAnswer, MeasuredRow
from orrery.calibrate.device.draft import anchors, draft, known_device
from orrery.calibrate.device.facts import facts_of
from orrery.calibrate.device.file import refuse_existing, refuse_table, write_device
from orrery.calibrate.device.levels import Levels, levels_of
from orrery.calibrate.device.pool import exchanges_of, pool_of
from orrery.calibrate.device.prior import with_prior
from orrery.calibrate.device.rows import COLUMNS, row_of
from orrery.calibrate.device.search import Measured, Search
from orrery.calibrate.device.unknowns import unknowns_of
from orrery.calibrate.device.work import Work
from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.backends.find import find_backend
from orrery.calibrate.measure.backends.torch_device import torch_devices
from orrery.calibrate.measure.clock import Timed
from orrery.calibrate.measure.exchange.team import Team
from orrery.calibrate.measure.quiet import PATIENCE_S, QuietSampler
from orrery.calibrate.measure.state import conditions
from orrery.calibrate.measure.watch import Canary, LoadMonitor
from orrery.evidence.tables import table_text
from orrery.network.collective import Collective

MIN_MEASUREMENTS = 4
LONGEST_MINUTES = 240.0
EACH_S = 0.1
"""How long one kernel is repeated."""

LOOK_EVERY = 10
"""Measurements between two looks of the watch."""

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Bench:
    """The timer of a work: the backend, or a team of processes that exchange."""

    backend: Backend
    quiet: QuietSampler
    team: Team | None

    def time(self, work: Work) -> tuple[Timed, float] | Unsupported:
        """A timing in a quiet moment, and how much slower than quiet the machine was."""
        if isinstance(work.op, Collective):
            if self.team is None:
                return Unsupported(reason="no team of processes")
            return self.quiet.take(partial(self.team.time, work.op.kind, int(work.op.message_bytes), budget_s=EACH_S))
        return self.quiet.time(self.backend, work.op, budget_s=EACH_S)


@typed
def calibrate_device(
    out: Path | str,
    *,
    backend: str = "",
    formats: Sequence[str] = (),
    minutes: float = 5.0,
    measurements: int = 0,
    has_exchange: bool = True,
    patience_s: float = PATIENCE_S,
    replace_file: bool = False,
    table: Path | str = "",
    on_progress: Progress = lambda done, total: None,
) -> DeviceAnswer:
    """Measure this machine for ``minutes``, or by ``measurements``, and write it to ``out`` as a device file.

    Two anchors set the roofs; then each measurement is the one that leaves the least doubt about all kernels of the
    pool. ``backend`` is "numpy" or "pytorch" (a GPU where there is one, else NumPy, if blank), ``formats`` what to
    multiply in (all that the backend has), ``patience_s`` how long each measurement waits for a quiet moment, ``table``
    a CSV file for the measurements themselves. Raises ScenarioError where a file is there already and ``replace_file``
    is not set, and where the machine cannot be measured.
    """
    out, found = user_path(out), find_backend(backend)
    refuse_existing(out, is_replaced=replace_file)
    if table:
        refuse_table(user_path(table), is_replaced=replace_file)
    limit = _limit(minutes, measurements)
    chosen = _formats(found, formats)
    canary = Canary.of(found)
    watch = LoadMonitor(canary)
    watch.look()
    began, quiet = monotonic(), QuietSampler(canary, patience_s)
    roofs = {format: anchors(found, format, quiet, budget_s=EACH_S) for format in chosen}
    device = with_prior(draft(found, roofs, name=out.stem), found, chosen)
    with _team(found, is_wanted=has_exchange) as team:
        library = team.library if team else ""
        pool = pool_of(device, found.name, chosen)
        pool += exchanges_of(library, team.num_processes) if team else ()
        if not pool:
            raise ScenarioError(
                f"{found.name} multiplies in {', '.join(chosen)} here, but nothing alike was ever measured."
            )
        search = Search(unknowns=unknowns_of(device, [work.key for work in pool]), pool=pool)
        bench = _Bench(found, quiet, team)
        for done in _rounds(search, bench, watch, began, minutes, limit):
            share = done / limit if measurements else min(1.0, (monotonic() - began) / (60.0 * minutes))
            on_progress(round(1000 * share), 1000)
    levels = levels_of(found, quiet) if not measurements else Levels(stream_bytes_per_s={}, launch_s=0.0)
    watch.look()
    on_progress(1000, 1000)
    return _written(out, Path(table) if table else None, found, search, watch, quiet, levels)


def _rounds(
    search: Search, bench: _Bench, watch: LoadMonitor, began: float, minutes: float, limit: int
) -> Iterator[int]:
    """Measure, and learn, until the time or the number is spent."""
    while len(search.measured) < limit and (monotonic() - began < 60.0 * minutes or limit < _UNLIMITED):
        work = search.next()
        if work is None:
            return
        got = bench.time(work)
        if isinstance(got, Unsupported):
            search.skip(work)
            continue
        search.add(work, *got)
        if len(search.measured) % LOOK_EVERY == 0:
            watch.look()
        yield len(search.measured)


_UNLIMITED = 10**9


def _limit(minutes: float, measurements: int) -> int:
    """How many measurements at most; refuses what cannot be meant."""
    if not 0 < minutes <= LONGEST_MINUTES:
        raise ScenarioError(f"--minutes {minutes:g}: write minutes above 0, at most {LONGEST_MINUTES:g}.")
    if measurements and measurements < MIN_MEASUREMENTS:
        raise ScenarioError(
            f"--measurements {measurements}: a device needs at least {MIN_MEASUREMENTS}; ten are a good few."
        )
    return measurements or _UNLIMITED


def _formats(backend: Backend, requested: Sequence[str]) -> tuple[str, ...]:
    known = backend.formats()
    if unknown := [format for format in requested if format not in known]:
        raise ScenarioError(
            f"--formats {', '.join(unknown)}: {backend.name} multiplies in {', '.join(known)} on this machine."
        )
    return tuple(dict.fromkeys(requested)) or known


@contextmanager
def _team(backend: Backend, *, is_wanted: bool) -> Generator[Team | None]:
    """Processes that exchange: over loopback on a CPU, over nccl where there are several GPUs; None where neither."""
    gpus = [device for device in torch_devices() if device.startswith("cuda")] if backend.device_kind != "cpu" else []
    if not is_wanted or (backend.device_kind != "cpu" and len(gpus) < 2):
        yield None
        return
    with Team("nccl", len(gpus)) if gpus else Team("tcp") as team:
        yield team


def _written(
    out: Path,
    table: Path | None,
    backend: Backend,
    search: Search,
    watch: LoadMonitor,
    quiet: QuietSampler,
    levels: Levels,
) -> DeviceAnswer:
    """The device file, the table if one is wanted, and the answer."""
    verdict, now = watch.verdict(), conditions()
    today = datetime.now(UTC).date().isoformat()
    run = Source(title=f"orrery calibrate device, {backend.name} on {now.cpu}", retrieved=today)
    count = len(search.measured)
    because = f"{count} measurements by {backend.name}, {today}" + "".join(f"; {words}" for words in verdict.words)
    own = search.calibrations(verdict.widen_ratio, because)
    device = replace(search.unknowns.device, calibrations=own)
    facts = facts_of(device, backend, run)
    recorded: Mapping[str, Any] = {
        "backend": backend.name,
        "measured_on": today,
        "num_measurements": count,
        "uncertainty_frac": round(search.uncertainty() * verdict.widen_ratio, 4),
        **now.to_json(),
        "widen_ratio": round(verdict.widen_ratio, 4),
        "disturbed_by": verdict.words,
        **levels.to_json(),
        "not_told": (*now.missing, *verdict.missing, *facts.absent),
    }
    known = known_device(backend)
    write_device(out, device, facts.stated, recorded, run, measured_as=known.name if known else "")
    rows = [row_of(m.work, str(out), run.title, **_cells(m)) for m in search.measured]
    if table:
        write_atomically(table, table_text(rows, COLUMNS))
    return DeviceAnswer(
        file=str(out),
        device=device.name,
        backend=backend.name,
        conditions=recorded,
        uncertainty_frac=recorded["uncertainty_frac"],
        quiet_ratio=max(quiet.slowness, default=1.0),
        rows=tuple(MeasuredRow.of(m) for m in search.measured),
        facts={name: fact.value for name, fact in facts.stated.items()},
        notes=verdict.words,
    )


def _cells(m: Measured) -> dict[str, str]:
    return {
        "time_s": f"{m.timed.time_s:.6g}",
        "spread_frac": f"{m.timed.spread_frac:.3f}",
        "slowness_ratio": f"{m.slowness_ratio:.3f}",
        "foreseen_s": f"{m.foreseen_s:.6g}",
    }
