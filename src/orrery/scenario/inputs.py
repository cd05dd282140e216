"""A door for a question that is no deployment: settings in, one checked object out, every mistake said at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.scenario.kinds import Settings
from orrery.scenario.names import renamed
from orrery.scenario.setting import Setting
from orrery.scenario.validation_errors import validation_errors

Q = TypeVar("Q", bound="Inputs")


class Inputs(Settings):
    """A user's inputs; blank means not stated."""

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


def read_asked(kind: type[Q], settings: Mapping[str, Any], known: Mapping[str, Setting], where: str = "") -> Q:
    """The question these settings ask. ScenarioError lists everything wrong with them, a line each."""
    plain = {key.replace("-", "_"): value for key, value in settings.items() if value is not None}
    plain = renamed(plain, known)
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        raise validation_errors(error, known, where) from None
