"""A measured table as `orrery check` reads it: CSV whose first line names the columns, ``kind`` among them."""

from collections.abc import Sequence

from orrery.base.errors import ScenarioError
from orrery.base.user_text import csv_lines
from orrery.calibrate.runs.log import Log
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings
from orrery.evidence.tables import read_table


def _recognise(log: Log) -> bool:
    first = log.text.lstrip().splitlines()[0]
    try:
        header = next(csv_lines(first, log.name), (1, list[str]()))[1]
    except ScenarioError:  # a long line of something else
        return False
    return "kind" in [h.strip() for h in header]


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    out: list[ParsedRun] = []
    for log in logs:
        table = read_table(log.path)
        for row in range(len(table)):
            out.append(ParsedRun(cells={c: v[row] for c, v in table.columns.items() if v[row]}))
    return out


READER = Reader(name="a measured table", recognise=_recognise, read=_read)
