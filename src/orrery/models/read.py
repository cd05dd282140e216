"""A model from a config.json on disk."""

from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, is_user_folder, read_user_text
from orrery.base.user_text import json_value
from orrery.models.config import parse
from orrery.models.model import Model

MAX_BYTES = 16 * 1024 * 1024
"""Published configs are 1 KB to 2 MB (long lists of unquantised modules); more is not a config."""

MODELOPT_FILE = "hf_quant_config.json"
"""File of NVIDIA ModelOpt beside a config.json that has no quantisation of its own."""


def read_model(path: Path, assume: str = "") -> Model:
    """The model described by ``path``: a config.json, or a folder with one; ``assume`` as in ``parse``."""
    file = path / "config.json" if is_user_folder(path) else path
    config = _read(file)
    beside = file.parent / MODELOPT_FILE
    if "quantization_config" not in config and file.name == "config.json" and is_user_file(beside):
        config = {**config, "quantization_config": _read(beside).get("quantization", {})}
    name = file.parent.name if file.name == "config.json" else file.stem.replace("--", "/", 1)
    return parse(config, name=name or file.stem, where=str(file), assume=assume)


def _read(file: Path) -> dict[str, Any]:
    if not is_user_file(file):
        raise ScenarioError(f"{file}: there is no such file; write the path of a config.json or of a folder with one.")
    found = json_value(
        read_user_text(file, "config.json", MAX_BYTES), file, "write a config.json as model hubs publish it"
    )
    if not isinstance(found, dict):
        raise ScenarioError(f"{file}: got a {type(found).__name__} at the top; write an object of keys and values.")
    return cast("dict[str, Any]", found)
