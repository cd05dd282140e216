"""Score every learned predictor of kernels on test rows, and write the tables of ``docs/models/learned.md``.

    python tools/fit/learned_report.py --data ../shared/data

Physics is the rule with its fitted constants; *with trees* is what orrery answers. Intervals: how many test rows lie
inside, and how wide they are (natural log of high over low, mean over rows), with one spread for all rows of a device
and with the row's own. The loss is the pinball loss of the four quantiles, as a share of that of one spread.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from error_range import pinball
from learned_rows import Rows, read
from numpy.typing import NDArray
from power_learn import off, rates, with_power

from orrery import kernels
from orrery.base.cost import Spread
from orrery.base.files import write_atomically
from orrery.base.units import percent
from orrery.catalog.residuals import FOLDER, read_forests, read_row_spreads
from orrery.evidence.split import TEST
from orrery.kernels.energy import calibration, power_spread, power_w
from orrery.kernels.residual.error_range import Spreads

Floats = NDArray[np.float64]

PAGE = Path(__file__).parents[2] / "docs/models/learned.md"
ERRORS_HEAD = """| what | rows | with trees | physics: median/mean/p90 | bias | orrery: median/mean/p90 | bias |
|---|---|---|---|---|---|---|"""
INTERVALS_HEAD = """| what | own interval | one spread: in 80 % | in 95 % | width 80 | width 95 | orrery: in 80 % \
| in 95 % | width 80 | width 95 | loss |
|---|---|---|---|---|---|---|---|---|---|---|"""
SIZES_HEAD = """| file | forests | trees | devices, formats and engines | bytes |
|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """Test rows of one op: log(measured / predicted) of the physics and of orrery, and log edges of both intervals."""

    what: str
    physics: Floats
    ours: Floats
    one: Floats  # rows x 4: the edges that all rows of a device share, around ours
    own: Floats  # rows x 4: the edges as orrery states them
    is_learned: NDArray[np.bool_]  # rows that trees corrected
    is_own: NDArray[np.bool_]  # rows with an interval of their own


def edges(spread: Spread | Spreads, count: int) -> Floats:
    """log of the four ratios, a line for every row."""
    ratios = (spread.low_80_ratio, spread.high_80_ratio, spread.low_95_ratio, spread.high_95_ratio)
    return np.log(np.column_stack([np.broadcast_to(np.ravel(r), count) for r in ratios]))


def scored_times(rows: Rows) -> Scored | None:
    """The test rows of a group whose time is predicted from its own constants."""
    test, found = rows.on(TEST), rows.calibration
    if not rows.is_own or not test.any():
        return None
    count = len(rows.time_s)
    stated = kernels.spreads(rows.op, rows.timing, rows.device, rows.engine)
    return Scored(
        what=found.op,
        physics=rows.off_physics[test],
        ours=rows.off[test],
        one=edges(found.spread, count)[test],
        own=edges(stated, count)[test],
        is_learned=(rows.timing.time_s != rows.physics.time_s)[test],
        is_own=np.full(test.sum(), isinstance(stated, Spreads)),
    )


def scored_power(rows: Rows) -> Scored:
    """The test rows of a group whose power is predicted from its own constants."""
    test, format = (rows.side == TEST) & np.isfinite(rows.power_w), rows.op.format
    found, count = calibration(rows.device, format), len(rows.power_w)
    physics, ours = off(rows)[test], off(rows, rows.kind)[test]
    stated = power_spread(rows.device, format, *rates(rows), rows.kind)
    bare, drawn = (power_w(rows.device, format, *rates(rows), op)[test] for op in ("", rows.kind))
    return Scored(
        what=f"power of {rows.kind}",
        physics=physics,
        ours=ours,
        one=edges(found.spread, count)[test] + np.log(bare / drawn)[:, None],
        own=edges(stated, count)[test],
        is_learned=bare != drawn,
        is_own=np.full(test.sum(), isinstance(stated, Spreads)),
    )


def joined(parts: Sequence[Scored], what: str) -> Scored:
    """Several groups as one."""
    names = ("physics", "ours", "one", "own", "is_learned", "is_own")
    return Scored(what=what, **{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


def three(off: Floats) -> str:
    """Median/mean/90th percentile of |predicted / measured - 1|, in percent."""
    errors = np.abs(np.expm1(-off))
    return "/".join(f"{100 * v:.1f}" for v in (np.median(errors), errors.mean(), np.quantile(errors, 0.9)))


def bias(off: Floats) -> str:
    """The median with its sign, in percent."""
    return f"{100 * np.median(np.expm1(-off)):+.1f}"


def error_line(s: Scored) -> str:
    """One line of the first table."""
    learned = percent(s.is_learned.mean())
    return (
        f"| {s.what} | {len(s.ours):,} | {learned} | {three(s.physics)} | {bias(s.physics)} | {three(s.ours)} "
        f"| {bias(s.ours)} |"
    )


def interval_line(s: Scored) -> str:
    """One line of the second table."""
    cells = [percent(s.is_own.mean())]
    for stated in (s.one, s.own):
        held = [np.mean((s.ours >= stated[:, i]) & (s.ours <= stated[:, i + 1])) for i in (0, 2)]
        cells += [percent(h, 1) for h in held] + [f"{np.mean(stated[:, i + 1] - stated[:, i]):.3f}" for i in (0, 2)]
    loss = pinball(s.ours, s.own).mean() / pinball(s.ours, s.one).mean()
    return f"| {s.what} | {' | '.join(cells)} | {loss:.2f} |"


def sizes() -> list[str]:
    """What lies on disk."""
    lines: list[str] = []
    for path in sorted(FOLDER.glob("*.npz")):
        is_spread = path.stem.endswith("_spread")
        found = read_row_spreads(path) if is_spread else read_forests(path)
        forests = {id(t): t for t in (f.trees if is_spread else f for f in found.values())}
        trees = sum(len(t.roots) for t in forests.values())
        lines.append(f"| `{path.name}` | {len(forests)} | {trees:,} | {len(found)} | {path.stat().st_size:,} |")
    total = sum(path.stat().st_size for path in FOLDER.glob("*.npz"))
    return [*lines, f"| **all** | | | | {total:,} |"]


def tables(data: Path) -> dict[str, str]:
    """The tables of the page, by the name in their marks."""
    rows = read(data)
    found = [s for r in rows if (s := scored_times(r))]
    power = [scored_power(r) for r in with_power(rows)]
    ops = [
        joined([s for s in part if s.what == op], op)
        for part in (found, power)
        for op in sorted({s.what for s in part})
    ]
    ops += [joined(power, "power, all of it")]
    return {
        "errors": "\n".join([ERRORS_HEAD, *map(error_line, ops)]),
        "intervals": "\n".join([INTERVALS_HEAD, *map(interval_line, ops)]),
        "sizes": "\n".join([SIZES_HEAD, *sizes()]),
    }


def pasted(page: str, name: str, table: str) -> str:
    """The page with a table between its two marks."""
    begin, end = f"<!-- {name}: tools/fit/learned_report.py -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    page = PAGE.read_text(encoding="utf-8")
    for name, table in tables(parser.parse_args().data).items():
        print(table, flush=True)
        page = pasted(page, name, table)
    write_atomically(PAGE, page)


if __name__ == "__main__":
    main()
