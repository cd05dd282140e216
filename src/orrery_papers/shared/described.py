"""Models that a set-up describes by their sizes, as the config.json that every command takes."""

import atexit
import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Setup

GPT = {"n_layer": "num_layers", "n_embd": "num_hidden", "n_head": "num_heads"}
"""Fields of a GPT-2's config, and the lines of a set-up that state them."""


def model_word(setup: Setup) -> str:
    """The catalogue's name of a set-up's model, or a file that describes the GPT of its layers, width and heads."""
    if word := setup.word("model"):
        return word
    sizes = {key: int(setup.number(line)) for key, line in GPT.items()}
    if not all(sizes.values()):
        raise FactError(f"setup {setup.name}: states no model; write model, or num_layers, num_hidden and num_heads.")
    rest = {
        "n_positions": int(setup.number("sequence_tokens")),
        "vocab_size": int(setup.number("num_vocabulary", 50257)),
    }
    return config_file({"model_type": "gpt2", **sizes, **rest}, setup.name)


def config_file(config: Mapping[str, Any], name: str) -> str:
    """A folder called ``name`` with that config.json; gone when the program ends."""
    return str(Path(written(json.dumps(config, sort_keys=True), f"{name}/config.json")).parent)


def written(text: str, name: str) -> str:
    """A file of that name and text; gone when the program ends."""
    path = _folder() / f"{len(text)}-{crc32(text.encode()):08x}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


@cache
def _folder() -> Path:
    made = Path(mkdtemp(prefix="orrery-models-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
