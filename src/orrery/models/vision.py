"""Vision towers layer by layer: the products that a patch and a token pass, and how many of both an image makes.

Which images become how many patches is the rule of each model's own image processor; its defaults (least and most
pixels, sides, tiles) are those of the published preprocessor_config.json, which a config.json does not hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import ceil, floor, sqrt
from typing import Literal

from orrery.models.fields import Fields

Shard = Literal["", "column", "row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One image as a tower computes it: ``sequences`` that attend to themselves alone, and the tokens that leave."""

    sequences: int
    patches: int  # of one sequence
    tokens: int  # of the whole image, in the prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionProduct:
    """``count`` products of (rows x inputs) by (inputs x outputs); ``patches`` patches make one row."""

    name: str
    inputs: int
    outputs: int
    count: int = 1
    patches: int = 1
    shard: Shard = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """An encoder of patches and its projector into the language model."""

    num_layers: int
    hidden_size: int
    ffn_size: int
    num_heads: int
    is_gated: bool
    products: tuple[VisionProduct, ...]
    view: Callable[[int, int], View] = field(compare=False)  # of an image of so many rows and columns of pixels
    window_patches: int = 0  # a windowed layer's attention is cut to so many
    num_windowed_layers: int = 0

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.hidden_size // self.num_heads

    @property
    def num_weights(self) -> int:
        """Elements of all products' matrices."""
        return sum(p.count * p.inputs * p.outputs for p in self.products)


def smart_resized(height: int, width: int, granule: int, least: int, most: int) -> tuple[int, int]:
    """Sides that are whole granules, with ``least`` to ``most`` pixels, near the image's proportions (Qwen's rule)."""
    rows, columns = (max(granule, round(side / granule) * granule) for side in (height, width))
    if rows * columns > most:
        shrink = sqrt(height * width / most)
        return max(granule, _whole(height / shrink, granule)), max(granule, _whole(width / shrink, granule))
    if rows * columns < least:
        grow = sqrt(least / (height * width))
        return ceil(height * grow / granule) * granule, ceil(width * grow / granule) * granule
    return rows, columns


def _whole(side: float, granule: int) -> int:
    return floor(side / granule) * granule


def _tower(
    hidden: int,
    ffn: int,
    layers: int,
    num_heads: int,
    *,
    is_gated: bool,
    embedding: VisionProduct,
    projector: tuple[VisionProduct, ...],
    view: Callable[[int, int], View],
    window_patches: int = 0,
    num_windowed_layers: int = 0,
) -> Tower:
    """Plain attention and a feed-forward part, gated or not, between an embedding and a projector."""
    wide = ffn * (2 if is_gated else 1)
    return Tower(
        num_layers=layers,
        hidden_size=hidden,
        ffn_size=ffn,
        num_heads=num_heads,
        is_gated=is_gated,
        products=(
            embedding,
            VisionProduct(name="qkv", inputs=hidden, outputs=3 * hidden, count=layers, shard="column"),
            VisionProduct(name="attention out", inputs=hidden, outputs=hidden, count=layers, shard="row"),
            VisionProduct(name="up", inputs=hidden, outputs=wide, count=layers, shard="column"),
            VisionProduct(name="down", inputs=ffn, outputs=hidden, count=layers, shard="row"),
            *projector,
        ),
        view=view,
        window_patches=window_patches,
        num_windowed_layers=num_windowed_layers,
    )


def _embedding(hidden: int, patch: int, frames: int = 1, channels: int = 3) -> VisionProduct:
    return VisionProduct(name="patches", inputs=channels * frames * patch * patch, outputs=hidden)


def _projector(patches: int, *widths: int, count: int = 1) -> tuple[VisionProduct, ...]:
    """Matrices one behind the other, cut by columns and rows in turn."""
    return tuple(
        VisionProduct(
            name=f"projector {i + 1}",
            inputs=a,
            outputs=b,
            count=count,
            patches=patches,
            shard="row" if i % 2 else "column",
        )
        for i, (a, b) in enumerate(pairwise(widths))
    )


def _native(patch: int, merge: int, least: int, most: int, height: int, width: int) -> View:
    rows, columns = smart_resized(height, width, patch * merge, least, most)
    patches = (rows // patch) * (columns // patch)
    return View(sequences=1, patches=patches, tokens=patches // merge**2)


def _qwen3(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Qwen3-VL, Qwen3.5: 65,536 to 16,777,216 pixels; a merger at the end and one for each deep-stacked layer."""
    hidden, ffn, layers = v.size("hidden_size"), v.size("intermediate_size"), v.size("depth")
    patch, merge = v.size("patch_size", default=16), v.size("spatial_merge_size", default=2)
    merged, mergers = hidden * merge**2, 1 + len(v.items("deepstack_visual_indexes"))
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_heads", default=16),
        is_gated=False,
        embedding=_embedding(hidden, patch, v.size("temporal_patch_size", default=2)),
        projector=_projector(merge**2, merged, merged, v.size("out_hidden_size"), count=mergers),
        view=partial(_native, patch, merge, 65_536, 16_777_216),
    )


def _qwen2_5(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Qwen2.5-VL: 3,136 to 12,845,056 pixels; all but a few layers attend within windows of 112 pixels a side."""
    hidden, ffn, layers = v.size("hidden_size"), v.size("intermediate_size"), v.size("depth")
    patch, merge = v.size("patch_size", "spatial_patch_size", default=14), v.size("spatial_merge_size", default=2)
    merged, whole = hidden * merge**2, v.sizes("fullatt_block_indexes") or (7, 15, 23, 31)
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_heads", default=16),
        is_gated=True,
        embedding=_embedding(hidden, patch, v.size("temporal_patch_size", default=2)),
        projector=_projector(merge**2, merged, merged, v.size("out_hidden_size", default=text_hidden)),
        view=partial(_native, patch, merge, 3_136, 12_845_056),
        window_patches=(v.size("window_size", default=112) // patch) ** 2,
        num_windowed_layers=layers - sum(i < layers for i in whole),
    )


def _square(patches: int, tokens: int, height: int, width: int) -> View:
    return View(sequences=1, patches=patches, tokens=tokens)


def _siglip(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Gemma 3: every image is one square of fixed size, whose patches are averaged to a fixed number of tokens."""
    hidden, ffn, layers = v.size("hidden_size"), v.size("intermediate_size"), v.size("num_hidden_layers")
    patch, side = v.size("patch_size", default=14), v.size("image_size", default=896)
    patches, tokens = (side // patch) ** 2, outer.size("mm_tokens_per_image", default=256)
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_attention_heads", default=16),
        is_gated=False,
        embedding=_embedding(hidden, patch),
        projector=_projector(max(1, patches // tokens), hidden, text_hidden),
        view=partial(_square, patches, tokens),
    )


def _by_rows(patch: int, merge: int, longest: int, height: int, width: int) -> View:
    shrink = max(1.0, height / longest, width / longest)
    rows, columns = (ceil(max(1, floor(side / shrink)) / (patch * merge)) for side in (height, width))
    return View(sequences=1, patches=rows * columns * merge**2, tokens=rows * (columns + 1))


def _pixtral(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Mistral Small 3.1 and on: the longer side is at most ``image_size``; every row of tokens ends with one more."""
    hidden, ffn, layers = v.size("hidden_size"), v.size("intermediate_size"), v.size("num_hidden_layers")
    patch, longest = v.size("patch_size", default=14), v.size("image_size", default=1540)
    merge = outer.size("spatial_merge_size", default=2)
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_attention_heads", default=16),
        is_gated=True,
        embedding=_embedding(hidden, patch),
        projector=_projector(merge**2, hidden * merge**2, hidden, text_hidden, text_hidden),
        view=partial(_by_rows, patch, merge, longest),
    )


def _limited(patch: int, down: int, across: int, height: int, width: int) -> View:
    patches = max(1.0, width // patch) * max(1.0, height // patch)
    shrink = min(1.0, sqrt(16_384 / patches), 512 * patch / width, 512 * patch / height)
    rows = ceil(max(1, int(height * shrink)) / (patch * down)) * down
    columns = ceil(max(1, int(width * shrink)) / (patch * across)) * across
    return View(sequences=1, patches=rows * columns, tokens=rows * columns // (down * across))


def _moonvit(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Kimi-K2.5: at most 16,384 patches and 512 on a side; what is left over is padded to whole merged patches."""
    hidden = v.size("hidden_size", "vt_hidden_size", default=1152)
    ffn = v.size("intermediate_size", "vt_intermediate_size", default=4304)
    layers = v.size("num_hidden_layers", "vt_num_hidden_layers", default=27)
    patch, merge = v.size("patch_size", default=14), v.sizes("merge_kernel_size") or (2, 2)
    down, across = max(1, merge[0]), max(1, merge[-1])
    merged = hidden * down * across
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_attention_heads", "vt_num_attention_heads", default=16),
        is_gated=False,
        embedding=_embedding(hidden, patch),
        projector=_projector(down * across, merged, merged, text_hidden),
        view=partial(_limited, patch, down, across),
    )


def best_tiles(height: int, width: int, side: int, most: int) -> tuple[int, int]:
    """Rows and columns of tiles (Llama 4's rule): the canvas of at most ``most`` tiles on which the image is largest.

    Where it fits without being shrunk, the canvas that enlarges it least; of equal ones the smallest.
    """
    grids = [(r, c) for r in range(1, most + 1) for c in range(1, most // r + 1)]
    scales = {g: min(g[0] * side / height, g[1] * side / width) for g in grids}
    enough = [s for s in scales.values() if s >= 1.0]
    chosen = min(enough) if enough else max(scales.values())
    return min((g for g in grids if scales[g] == chosen), key=lambda g: g[0] * g[1])


def _in_tiles(side: int, each: int, merge: int, height: int, width: int) -> View:
    rows, columns = best_tiles(height, width, side, 16)
    tiles = rows * columns
    separators = tiles if tiles > 1 else 0
    tiles += tiles > 1
    return View(sequences=tiles, patches=each + 1, tokens=tiles * each // merge**2 + separators + 3)


def _llama4(v: Fields, outer: Fields, text_hidden: int) -> Tower:
    """Llama 4: at most 16 tiles, and the whole image once more as a tile where there are several; a token between
    tiles of a row, one behind each row, and three around the image."""
    hidden, ffn = v.size("hidden_size", default=768), v.size("intermediate_size", default=5632)
    layers, patch = v.size("num_hidden_layers", default=34), v.size("patch_size", default=14)
    side, merge = v.size("image_size", default=336), round(1 / max(0.1, v.number("pixel_shuffle_ratio", default=0.5)))
    inner, outer_width = v.size("projector_input_dim", default=4096), v.size("projector_output_dim", default=4096)
    each = (side // patch) ** 2
    return _tower(
        hidden,
        ffn,
        layers,
        v.size("num_attention_heads", default=16),
        is_gated=False,
        embedding=_embedding(hidden, patch),
        projector=_projector(merge**2, hidden * merge**2, inner, outer_width, text_hidden),
        view=partial(_in_tiles, side, each, merge),
    )


BUILDERS: dict[str, Callable[[Fields, Fields, int], Tower]] = {
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
    "qwen2_5_vl": _qwen2_5,
    "gemma3": _siglip,
    "mistral3": _pixtral,
    "kimi_k25": _moonvit,
    "llama4": _llama4,
}
"""``model_type`` of the whole config -> its tower; others are counted in memory at most, and take no images."""


def vision_tower(outer: Fields, text_hidden: int) -> Tower | None:
    """The tower that a whole config describes; None where there is none, or none that is known layer by layer."""
    vision = outer.table("vision_config")
    build = BUILDERS.get(outer.word("model_type"))
    return build(vision, outer, text_hidden) if vision is not None and build else None
