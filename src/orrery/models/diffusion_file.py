"""A diffusion pipeline as a file describes it: what is wrong with its tables and values is named with its place."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import isfinite
from typing import Any, TypeVar, cast

from orrery.base.errors import FactError, shown
from orrery.models.diffusion import GUIDANCE, KINDS, Block, Decoder, DiffusionModel, Level, TextEncoder
from orrery.models.unet import UNet

T = TypeVar("T")

MAX_SIZE, MAX_ITEMS, MAX_LEVELS, MAX_PARAMETERS = 100_000, 64, 8, 1e13
"""Largest whole number, most tables of a kind, most levels of a U-Net, and most parameters of an encoder."""

CHOICES: Mapping[str, tuple[str, ...]] = {"kind": KINDS, "guidance": GUIDANCE}
MAY_BE_ZERO = frozenset(
    {"num_dual", "num_skips", "cross_width", "text_width", "modulation_width", "modulation_inputs", "tile", "stride"}
)
WORDS = frozenset({"name"})


def diffusion_model(name: str, raw: Any, where: str, sources: tuple[str, ...] = ()) -> DiffusionModel:
    """The model that the tables ``pipeline``, ``encoders``, ``decoder`` and ``blocks`` describe; FactError where they
    do not."""
    tables = _table(raw, where, "published")
    decoder = dict(_table(tables.get("decoder"), where, "decoder"))
    levels = tuple(
        _made(Level, level, where, "levels") for level in _list(decoder.pop("levels", None), where, "levels")
    )
    encoders = _list(tables.get("encoders"), where, "encoders")
    pipeline = {
        "name": name,
        **_denoiser(tables, where),
        "encoders": tuple(_made(TextEncoder, encoder, where, "encoders") for encoder in encoders),
        "decoder": _made(Decoder, decoder, where, "decoder", levels=levels),
        "sources": sources,
    }
    found = _made(DiffusionModel, tables.get("pipeline"), where, "pipeline", **pipeline)
    _fit_together(found, where)
    return found


def _denoiser(tables: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Blocks of a transformer, or blocks and convolutions of the U-Net that the table ``unet`` describes."""
    if "unet" not in tables:
        listed = _list(tables.get("blocks"), where, "blocks")
        return {"blocks": tuple(_made(Block, block, where, "blocks") for block in listed), "convolutions": ()}
    if "blocks" in tables:
        raise FactError(f"{where}: unet: its blocks follow from its widths and depths; leave blocks out.")
    raw = dict(_table(tables["unet"], where, "unet"))
    sizes = {name: _sizes(raw.pop(name, None), where, name) for name in ("widths", "depths")}
    if len(sizes["widths"]) != len(sizes["depths"]):
        raise FactError(f"{where}: unet: widths and depths: one of each a level; write as many.")
    unet = _made(UNet, raw, where, "unet", **sizes)
    if any(depth and width % unet.head_size for width, depth in zip(unet.widths, unet.depths, strict=True)):
        raise FactError(
            f"{where}: unet: head_size {unet.head_size} divides no width that attends; write one that does."
        )
    if not unet.blocks():
        raise FactError(f"{where}: unet: depths: got none above 0; write the transformer blocks of each level.")
    return {"blocks": unet.blocks(), "convolutions": unet.convolutions()}


def _sizes(raw: Any, where: str, name: str) -> tuple[int, ...]:
    """Whole numbers of a U-Net's levels; 0 blocks are allowed, widths of 0 are not."""
    least, listed = 1 if name == "widths" else 0, cast("list[Any]", raw) if isinstance(raw, list) else []
    if not 0 < len(listed) <= MAX_LEVELS or any(type(v) is not int or not least <= v <= MAX_SIZE for v in listed):
        raise FactError(f"{where}: unet: {name}: got {shown(cast(Any, raw))}; write 1 to {MAX_LEVELS} whole numbers.")
    return tuple(listed)


def _fit_together(model: DiffusionModel, where: str) -> None:
    for block in model.blocks:
        if block.width % block.num_heads:
            raise FactError(
                f"{where}: blocks: width {block.width} is no multiple of num_heads {block.num_heads}; write one."
            )
    tile, stride = model.decoder.tile, model.decoder.stride
    if (tile > 0) != (stride > 0) or stride > tile:
        raise FactError(f"{where}: decoder: tile {tile} and stride {stride}; write both, stride at most tile, or none.")


def _table(raw: Any, where: str, name: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise FactError(f"{where}: {name}: got {shown(raw)}; write a table, as the files of facts/diffusion do.")
    return cast("Mapping[str, Any]", raw)


def _list(raw: Any, where: str, name: str) -> list[Any]:
    found = cast("list[Any]", raw) if isinstance(raw, list) else []
    if not 0 < len(found) <= MAX_ITEMS:
        raise FactError(f"{where}: {name}: got {shown(cast(Any, raw))}; write 1 to {MAX_ITEMS} tables.")
    return found


def _made(kind: type[T], raw: Any, where: str, table_name: str, **parts: Any) -> T:
    """One table as the dataclass that it is of; ``parts`` are what other tables gave."""
    table, known = _table(raw, where, table_name), {f.name: f for f in fields(cast(Any, kind)) if f.name not in parts}
    if other := [key for key in table if key not in known]:
        raise FactError(f"{where}: {table_name}: there is no {shown(other[0])}; write any of {', '.join(known)}.")
    if missing := [key for key, f in known.items() if f.default is MISSING and key not in table]:
        raise FactError(f"{where}: {table_name}: {', '.join(missing)}: missing; write a value for each.")
    return kind(
        **{key: _value(key, value, str(known[key].type), f"{where}: {table_name}") for key, value in table.items()},
        **parts,
    )


def _value(key: str, value: Any, type_name: str, where: str) -> Any:
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise FactError(f"{where}: {key}: got {shown(value)}; write one of {', '.join(CHOICES[key])}.")
        return value
    if key in WORDS:
        if not isinstance(value, str):
            raise FactError(f"{where}: {key}: got {shown(value)}; write text in quotes.")
        return value
    if "bool" in type_name:
        if not isinstance(value, bool):
            raise FactError(f"{where}: {key}: got {shown(value)}; write true or false.")
        return value
    if "float" in type_name:
        if type(value) not in (int, float) or not (isfinite(value) and 0 < value <= MAX_PARAMETERS):
            raise FactError(f"{where}: {key}: got {shown(value)}; write a number above 0.")
        return float(value)
    least = 0 if key in MAY_BE_ZERO else 1
    if type(value) is not int or not least <= value <= MAX_SIZE:
        raise FactError(f"{where}: {key}: got {shown(value)}; write a whole number from {least} to {MAX_SIZE:,}.")
    return value
