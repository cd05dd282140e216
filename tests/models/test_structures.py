"""Every family read from a config that says little, and from a published one: layers, widths and counts written out.

``structures.toml`` holds what is read, one line a kind of layer: linear layers as ``name inputs x outputs``, the mixer,
experts, and the sums that other floors use. A config that says little shows what a missing key means: the defaults of
the family's configuration class in transformers.
"""

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from orrery.catalog.models import published_config
from orrery.models.config import families_by_type, parse
from orrery.models.model import Block, Linear, Model

FILE = Path(__file__).parent / "structures.toml"
RECORDED: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))


def stated(part: Any) -> str:
    """A part by the fields that are not at their default."""
    shown = [
        f"{f.name}={getattr(part, f.name)}"
        for f in fields(part)
        if f.default is MISSING or getattr(part, f.name) != f.default
    ]
    return f"{type(part).__name__}({', '.join(shown)})"


def of_linear(x: Linear) -> str:
    marks = f" /{x.groups}" * (x.groups > 1) + " bias" * x.has_bias + f" kv{x.kv_heads}" * (x.kv_heads > 0)
    return f"{x.name} {x.in_features}x{x.out_features} {x.shard} {x.role}{marks}"


def of_block(block: Block) -> str:
    sums = f"other {block.other_parameters}, normed {block.norm_elements}, activated {block.activation_elements}"
    more = f", reduces {block.num_reduces}" + f", connected {block.connection_elements}" * bool(
        block.connection_elements
    )
    more += "".join(f", {x.name} {x.kind} {x.elements}" for x in block.passes) + f", kept {block.kept_elements}" * bool(
        block.kept_elements
    )
    parts = [stated(part) for part in (block.mixer, block.experts) if part is not None]
    return "; ".join([f"{block.count} {block.name}", *map(of_linear, block.linears), *parts, sums + more])


def of_model(model: Model) -> list[str]:
    """The lines of ``structures.toml``."""
    head = f"head {of_linear(model.head)}{' tied' * model.is_head_tied}" if model.head else "no head"
    whole = (
        f"{model.family}: {model.hidden_size} wide, context {model.max_context_tokens}, "
        f"embedding {model.embedding_parameters}, {head}, other {model.other_parameters}, "
        + f"tables {model.table_parameters}, " * bool(model.table_parameters)
        + f"tower {model.tower_parameters}, draft {model.draft_parameters}, in {model.weights_format}"
        + f", experts in {model.experts_format}" * bool(model.experts_format)
        + (f", {stated(model.rotation)}" if model.rotation else "")
    )
    decoder, encoder = map(of_block, model.blocks), (f"encoder {of_block(b)}" for b in model.encoder)
    return [whole, *decoder, *encoder, *(f"draft {of_block(b)}" for b in (model.draft_block,) if b)]


def test_every_type_is_recorded():
    sizes_of_each_layer = {"deci", "nemotron-nas", "nemotron_nas"}  # a table a layer: as published only
    little = {one["config"]["model_type"] for one in RECORDED.values() if "config" in one}
    assert little == set(families_by_type()) - sizes_of_each_layer


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_config_is_read_as_written_out(name):
    one = RECORDED[name]
    config = one.get("config") or published_config(name)
    assert of_model(parse(config, name=name)) == one["layers"]


COUNTED = sorted(name for name, one in RECORDED.items() if "num_parameters" in one)


@pytest.mark.parametrize("name", COUNTED)
def test_small_configs_count_as_transformers_counts_them(name):
    """``num_parameters``: what transformers 5.24.0 builds from the same config (a text model and a head of its own)."""
    one = RECORDED[name]
    assert parse(one["config"], name=name).num_parameters == one["num_parameters"]
