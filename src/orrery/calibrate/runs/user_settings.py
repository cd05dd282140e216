"""Checked settings from the user, merged with those of the logs: a contradiction is refused."""

from collections.abc import Callable, Iterable, Mapping
from math import isclose, isfinite

from orrery.base.errors import OrreryError, ScenarioError, nearest
from orrery.calibrate.runs.reader import ParsedRun
from orrery.calibrate.runs.settings import BY_NAME, column_of
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.numerics.registry import get_format

LENGTHS = ("input_tokens", "output_tokens")
SAME_LENGTH = 0.05
"""Lengths said and counted may differ by as much: tools draw them around what was asked for."""


def checked(user_settings: Mapping[str, str]) -> dict[str, str]:
    """Column -> cell; every setting that is unknown or no sensible number is refused."""
    wrong: list[str] = []
    out: dict[str, str] = {}
    for key, value in user_settings.items():
        name, text = key.replace("-", "_"), str(value).strip()
        if not (setting := BY_NAME.get(name)):
            near = nearest(name, BY_NAME, 1)
            wrong.append(f"There is no setting {key!r}" + (f"; did you mean {near[0]!r}?" if near else "."))
            continue
        if setting.kind in ("count", "number") and not _is_within(text, setting.least, setting.most, setting.kind):
            wrong.append(f"{name}: got {text!r}; write {setting.expects}, such as {setting.flag} {setting.example}.")
        out[column_of(name)] = text
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return out


def _is_within(text: str, least: float, most: float, kind: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return isfinite(value) and least <= value <= most and value > 0 and (kind != "count" or value == int(value))


def fill(run: ParsedRun, user_settings: Mapping[str, str], where: str) -> None:
    """Fill what the log leaves blank; ScenarioError where log and user say different things."""
    for column, value in user_settings.items():
        if column == "seconds":
            continue
        stated = run.cells.get(column, "")
        if stated and not _is_same(column, stated, value):
            flag = next(s.flag for s in BY_NAME.values() if column_of(s.name) == column)
            raise ScenarioError(
                f"{where}: says {column} = {stated}, but {flag} says {value}; leave the flag out, or give it only with "
                "the runs that it describes."
            )
        if not stated or column == "model":  # a served name or a path is no model's name: the flag knows better
            run.cells[column] = value
    if not run.cells.get("mode") and run.cells.get("kind") == "serving":
        run.cells["mode"] = _mode(run.cells, where)


def _mode(cells: Mapping[str, str], where: str) -> str:
    for column, mode in (("concurrency", "closed"), ("request_rate_per_s", "open"), ("batch_size", "static")):
        if cells.get(column):
            return mode
    raise ScenarioError(
        f"{where}: does not say how requests arrived; add --concurrency 32 (a fixed number in flight) or --rate 4 "
        "(requests a second)."
    )


def _is_same(column: str, stated: str, value: str) -> bool:
    names: dict[str, Callable[[str], str]] = {"model": _model, "device": lambda x: get_device(x).name}
    names |= {f"{w}_format": lambda x: get_format(x).name for w in ("weights", "activations", "kv")}
    if column in names:
        try:
            stated = names[column](stated)
        except (OrreryError, OSError):
            return column == "model"  # the log's is not a name that is known
        return stated == names[column](value)
    try:
        return isclose(float(stated), float(value), rel_tol=SAME_LENGTH if column in LENGTHS else 1e-6)
    except ValueError:
        return stated.casefold() == value.casefold()


def _model(name: str) -> str:
    return get_model(name).name


def one_of(cells: Iterable[Mapping[str, str]], column: str) -> tuple[str, ...]:
    """The different words of a column, blanks left out, in order."""
    return tuple(dict.fromkeys(c[column] for c in cells if c.get(column)))
