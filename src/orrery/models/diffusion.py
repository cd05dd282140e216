"""Diffusion pipelines: text encoders, a transformer that denoises latents step by step, and a decoder to pixels.

    tokens = (height / spatial / patch) (width / spatial / patch) ceil(latent frames / patch of frames)
    latent frames = (frames - 1) / temporal + 1, for videos whose first frame stands alone

Blocks are of four kinds, as the published networks have them: ``joint`` (image and text with weights of their own and
one attention over both; Esser et al. 2024, arXiv 2403.03206), ``single`` (the same weights for both), ``cross``
(attention over the image, then from it to the text) and ``linear`` (the same with linear attention; Xie et al. 2024,
arXiv 2410.10629). A U-Net has convolutions beside ``cross`` blocks that see every second or fourth position a side.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal

BlockKind = Literal["joint", "single", "cross", "linear"]
KINDS = ("joint", "single", "cross", "linear")
GUIDANCE = ("none", "batched", "sequential")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``count`` products of (rows x inputs) by (inputs x outputs); its rows are tokens of the image, text or both."""

    rows: Literal["image", "text", "both"]
    inputs: int
    outputs: int
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``count`` equal blocks of a transformer."""

    kind: BlockKind
    count: int
    width: int
    num_heads: int
    ffn_size: int
    is_gated: bool = False
    has_qk_norm: bool = False
    has_rope: bool = False
    has_fp32_norms: bool = False
    num_dual: int = 0  # blocks of a joint kind with a second attention over the image alone
    num_skips: int = 0  # blocks that take in what an earlier block passed across
    cross_width: int = 0  # of the text that cross attention reads; 0: the block's own width
    text_width: int = 0  # of a joint kind's text; 0: the block's own width
    modulation_width: int = 0  # outputs of the products of time that scale and shift every block; 0: one table for all
    modulation_inputs: int = 0  # of those products; 0: the block's own width
    shrink: int = 1  # latents a side that one of its tokens stands for (U-Nets)

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.width // self.num_heads

    def products(self) -> Iterator[Product]:
        """The matrix products of all ``count`` blocks."""
        w, f = self.width, self.ffn_size
        up = 2 * f if self.is_gated else f
        streams: tuple[Literal["image", "text", "both"], ...] = (
            ("image", "text") if self.kind == "joint" else ("both",) if self.kind == "single" else ("image",)
        )
        for rows in streams:
            own = self.text_width if rows == "text" and self.text_width else w
            yield Product(rows=rows, inputs=own, outputs=w, count=4 * self.count)  # the last turned round
            yield Product(rows=rows, inputs=own, outputs=up * own // w, count=self.count)
            yield Product(rows=rows, inputs=f * own // w, outputs=own, count=self.count)
        if self.num_dual:
            yield Product(rows="image", inputs=w, outputs=w, count=4 * self.num_dual)
        if self.num_skips:
            yield Product(rows="image", inputs=2 * w, outputs=w, count=self.num_skips)
        if self.kind in ("cross", "linear"):
            yield Product(rows="image", inputs=w, outputs=w, count=2 * self.count)
            yield Product(rows="text", inputs=self.cross_width or w, outputs=w, count=2 * self.count)

    @property
    def num_weights(self) -> float:
        """Elements of the products' matrices, and of those that modulate."""
        return sum(p.count * p.inputs * p.outputs for p in self.products()) + float(
            self.count * (self.modulation_inputs or self.width) * self.modulation_width
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution of a U-Net, ``kernel`` x ``kernel``, that leaves one position in ``shrink`` a side."""

    num_inputs: int
    num_outputs: int
    kernel: int = 3
    shrink: int = 1

    @property
    def depth(self) -> int:
        """Inputs of one output."""
        return self.kernel**2 * self.num_inputs

    @property
    def num_weights(self) -> int:
        """Elements of its matrix."""
        return self.depth * self.num_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoder:
    """A language model that reads the prompt once; ``num_parameters`` without its table of words."""

    name: str
    num_parameters: float
    num_layers: int
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Residual blocks of two convolutions at one resolution of a decoder, and what doubles behind them."""

    width: int
    count: int
    doubles_space: bool
    doubles_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """From latents to pixels, coarse levels first. ``taps`` of a convolution: 9 in a picture, 27 in a video.

    Tiles of ``tile`` pixels that start every ``stride`` are decoded one by one where both are above 0.
    """

    levels: tuple[Level, ...]
    taps: int
    tile: int = 0
    stride: int = 0

    def overlap(self, height: int, width: int) -> float:
        """Pixels decoded for one that is shown; 1 without tiles."""
        if not self.tile:
            return 1.0
        return overlapped(height, self.tile, self.stride) * overlapped(width, self.tile, self.stride)

    def work(self, height: int, width: int, frames: int) -> tuple[float, float]:
        """(multiply-adds, elements that stand between layers) for latents of so many rows, columns and frames."""
        macs, elements = 0.0, 0.0
        before = self.levels[0].width
        for level in self.levels:
            positions = float(height * width * frames)
            macs += positions * self.taps * level.width * (before + level.width)
            macs += (level.count - 1) * positions * self.taps * 2 * level.width**2
            elements += level.count * positions * level.width
            if level.doubles_time:
                frames = 2 * frames - 1 if frames > 1 else 1
            if level.doubles_space:
                height, width = 2 * height, 2 * width
                macs += float(height * width * frames) * 9 * level.width**2
                elements += float(height * width * frames) * level.width
            before = level.width
        return macs, elements


def overlapped(side: int, tile: int, stride: int) -> float:
    """Pixels along a side that tiles decode, over its length: each starts ``stride`` behind the one before."""
    return sum(min(tile, side - start) for start in range(0, side, stride)) / side


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionModel:
    """A pipeline by its published configs, and what it runs with where nothing is asked."""

    name: str
    blocks: tuple[Block, ...]
    encoders: tuple[TextEncoder, ...]
    decoder: Decoder
    guidance: Literal["none", "batched", "sequential"]
    spatial: int  # pixels a latent position a side
    temporal: int  # frames a latent frame; 1 for pictures
    patch: int
    patch_frames: int
    num_text_tokens: int  # that blocks see
    num_inference_steps: int
    height: int
    width: int
    num_frames: int  # 1 for pictures
    frame_rate_hz: float = 0.0  # of a video as it is shown
    convolutions: tuple[Convolution, ...] = ()  # of a U-Net, beside its blocks
    sources: tuple[str, ...] = ()

    @property
    def is_video(self) -> bool:
        """Whether it makes more than one frame."""
        return self.temporal > 1

    def latent_grid(self, height: int, width: int, num_frames: int) -> tuple[int, int, int]:
        """Rows, columns and frames of the latents."""
        frames = (num_frames - 1) // self.temporal + 1 if self.is_video else 1
        return height // self.spatial, width // self.spatial, frames

    def token_grid(self, height: int, width: int, num_frames: int) -> tuple[int, int, int]:
        """Rows, columns and frames of tokens."""
        rows, columns, frames = self.latent_grid(height, width, num_frames)
        return rows // self.patch, columns // self.patch, ceil(frames / self.patch_frames)

    def num_tokens(self, height: int, width: int, num_frames: int) -> int:
        """Tokens of one picture or video that the denoiser sees, without the text."""
        rows, columns, frames = self.token_grid(height, width, num_frames)
        return rows * columns * frames

    @property
    def shrink(self) -> int:
        """Tokens a side that one of its deepest level stands for."""
        return max((c.shrink for c in self.convolutions), default=1)

    @property
    def transformer_weights(self) -> float:
        """Elements of the denoiser's matrices."""
        return sum(b.num_weights for b in self.blocks) + float(sum(c.num_weights for c in self.convolutions))

    @property
    def decoder_weights(self) -> float:
        """Elements of the decoder's convolutions."""
        return sum(level.count * 2.0 * self.decoder.taps * level.width**2 for level in self.decoder.levels)

    def step_macs(self, num_tokens: int, num_text: int) -> float:
        """Multiply-adds of one pass over one picture: products and attention."""
        total = sum(num_tokens / c.shrink**2 * c.num_weights for c in self.convolutions)
        for b in self.blocks:
            seen = num_tokens // b.shrink**2
            rows = {"image": seen, "text": num_text, "both": seen + num_text}
            total += sum(float(p.count * p.inputs * p.outputs) * rows[p.rows] for p in b.products())
            total += sum(2.0 * b.width * q * k * n for q, k, n in attentions(b, seen, num_text))
            if b.kind == "linear":
                total += 2.0 * b.count * seen * b.width * b.head_size
        return total


def attentions(block: Block, num_tokens: int, num_text: int) -> Iterator[tuple[int, int, int]]:
    """(queries, keys, how many) of softmax attentions of all ``count`` blocks."""
    if block.kind in ("joint", "single"):
        yield num_tokens + num_text, num_tokens + num_text, block.count
        if block.num_dual:
            yield num_tokens, num_tokens, block.num_dual
        return
    if block.kind == "cross":
        yield num_tokens, num_tokens, block.count
    yield num_tokens, num_text, block.count
