"""A door for a question that is no deployment: settings in, one checked object out, every mistake said at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from orrery.base.errors import ScenarioError, nearest
from orrery.base.files import write_atomically
from orrery.scenario.setting import Setting

Q = TypeVar("Q", bound="Asked")


class Asked(BaseModel):
    """What a user asks; blank means that it was not said."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    def written(self) -> dict[str, Any]:
        """The settings that were given, as plain values."""
        return self.model_dump(exclude_defaults=True)

    def save(self, path: Path) -> None:
        """Write what was given; reading it back asks the same."""
        import tomli_w

        try:
            write_atomically(path, tomli_w.dumps(self.written()))
        except OSError as error:
            raise ScenarioError(f"{path}: cannot be written: {error.strerror}.") from None


def limited(setting: Setting) -> dict[str, Any]:
    """Default and limits of a number, as its setting states them."""
    if setting.kind == "count":
        return {"default": None, "ge": int(setting.least), "le": int(setting.most)}
    low = "gt" if setting.excludes_least else "ge"
    return {"default": None, low: setting.least, "le": setting.most, "allow_inf_nan": False}


def read_asked(kind: type[Q], settings: Mapping[str, Any], known: Mapping[str, Setting], where: str = "") -> Q:
    """The question these settings ask. ScenarioError lists everything wrong with them, a line each."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        prefix = f"{where}: " if where else ""
        lines = [prefix + _sentence(e["type"], e["loc"], e["msg"], e["input"], known) for e in error.errors()]
        raise ScenarioError("\n".join(dict.fromkeys(lines))) from None


def _sentence(kind: str, loc: tuple[int | str, ...], message: str, got: Any, known: Mapping[str, Setting]) -> str:
    """What, what was got, and what to write."""
    name = str(loc[0]) if loc else ""
    detail = message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        near = nearest(name, known, 1)
        return f"There is no setting {name!r}; " + (
            f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
        )
    if name not in known:
        return f"{detail}."
    setting, short = known[name], repr(got) if len(repr(got)) <= 60 else repr(got)[:57] + "…"
    if kind == "value_error" and "truth value" not in detail:
        return f"{name}: got {short}; {detail}."
    return f"{name}: got {short}; write {setting.expects}, such as {name} = {setting.example}."
