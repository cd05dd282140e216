"""The network of a diffusion model as a list of layers: convolutions and transformer layers over a grid of positions.

A layer sees one position in ``shrink`` along each side of the grid, so its tokens are positions / shrink^2. Widths and
depths are those of the published configurations: stable-diffusion-xl-base-1.0 (unet/config.json) and LTX-Video
(transformer/config.json).
"""

from collections.abc import Iterator
from dataclasses import dataclass

GRID_KERNEL = 3
"""Side of a U-Net's convolutions; those that only change the width have a side of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution of ``kernel`` x ``kernel`` that leaves one position in ``shrink`` a side."""

    num_inputs: int
    num_outputs: int
    kernel: int = GRID_KERNEL
    shrink: int = 1

    def num_multiply_adds(self, num_positions: int, num_text_tokens: int) -> float:
        """Multiply-adds of one picture; the text plays no part."""
        del num_text_tokens
        return num_positions / self.shrink**2 * self.kernel**2 * self.num_inputs * self.num_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerLayer:
    """Attention over all positions, attention to the text, and a feed-forward part."""

    width: int
    num_heads: int
    ffn_size: int
    text_width: int
    is_gated: bool
    shrink: int = 1

    @property
    def ffn_inputs(self) -> int:
        """Outputs of the first product of the feed-forward part: twice as many where one half gates the other."""
        return 2 * self.ffn_size if self.is_gated else self.ffn_size

    def num_multiply_adds(self, num_positions: int, num_text_tokens: int) -> float:
        """Multiply-adds of one picture."""
        tokens = num_positions / self.shrink**2
        products = 6.0 * self.width**2 + self.width * (self.ffn_inputs + self.ffn_size)
        attention = 2.0 * self.width * (tokens + num_text_tokens)
        return tokens * (products + attention) + 2.0 * num_text_tokens * self.text_width * self.width


Layer = Convolution | TransformerLayer


def stable_diffusion_xl() -> Iterator[Layer]:
    """The U-Net of SDXL over a latent grid of an eighth of the picture's side."""
    return unet(widths=(320, 640, 1280), depths=(0, 2, 10), head_size=64, text_width=2048, channels=4)


def ltx_video() -> Iterator[Layer]:
    """The transformer of LTX-Video: 28 layers of 32 heads of 64 over latents of 128 channels."""
    layer = TransformerLayer(width=2048, num_heads=32, ffn_size=8192, text_width=2048, is_gated=False)
    yield Convolution(num_inputs=128, num_outputs=2048, kernel=1)
    yield from [layer] * 28
    yield Convolution(num_inputs=2048, num_outputs=128, kernel=1)


def unet(
    *, widths: tuple[int, ...], depths: tuple[int, ...], head_size: int, text_width: int, channels: int
) -> Iterator[Layer]:
    """Two residual blocks a level on the way down, three on the way up that also take what was passed across."""
    passed, width = [widths[0]], widths[0]
    yield Convolution(num_inputs=channels, num_outputs=width)
    for level, (wide, depth) in enumerate(zip(widths, depths, strict=True)):
        for _ in range(2):
            yield from _block(width, wide, depth, 2**level, head_size, text_width)
            width = wide
            passed.append(wide)
        if level + 1 < len(widths):
            yield Convolution(num_inputs=wide, num_outputs=wide, shrink=2 ** (level + 1))
            passed.append(wide)
    bottom = 2 ** (len(widths) - 1)
    yield from _block(width, width, depths[-1], bottom, head_size, text_width)
    yield from _block(width, width, 0, bottom, head_size, text_width)
    for level, (wide, depth) in reversed(list(enumerate(zip(widths, depths, strict=True)))):
        for _ in range(3):
            yield from _block(width + passed.pop(), wide, depth, 2**level, head_size, text_width)
            width = wide
        if level:
            yield Convolution(num_inputs=wide, num_outputs=wide, shrink=2 ** (level - 1))
    yield Convolution(num_inputs=width, num_outputs=channels)


def _block(inputs: int, width: int, depth: int, shrink: int, head_size: int, text_width: int) -> Iterator[Layer]:
    """A residual block of two convolutions, then ``depth`` transformer layers between two products."""
    yield Convolution(num_inputs=inputs, num_outputs=width, shrink=shrink)
    yield Convolution(num_inputs=width, num_outputs=width, shrink=shrink)
    if inputs != width:
        yield Convolution(num_inputs=inputs, num_outputs=width, kernel=1, shrink=shrink)
    if depth:
        yield from [Convolution(num_inputs=width, num_outputs=width, kernel=1, shrink=shrink)] * 2
        yield from [
            TransformerLayer(
                width=width,
                num_heads=width // head_size,
                ffn_size=4 * width,
                text_width=text_width,
                is_gated=True,
                shrink=shrink,
            )
        ] * depth
