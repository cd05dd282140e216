"""U-Nets that denoise: residual blocks of convolutions and transformer blocks over a grid that halves at each level.

A layer sees one position in ``shrink`` along each side of the latents, so its tokens are positions / shrink^2. Two
residual blocks a level on the way down, three on the way up that also take what was passed across (Podell et al. 2023,
arXiv 2307.01952).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from orrery.models.diffusion import Block, Convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class UNet:
    """Widths of its levels, finest first, transformer blocks behind each residual block of a level, and heads."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    head_size: int
    text_width: int
    channels: int

    def layers(self) -> Iterator[Convolution | Block]:
        """Every convolution, and every single transformer block, in their order."""
        passed, width = [self.widths[0]], self.widths[0]
        yield Convolution(num_inputs=self.channels, num_outputs=width)
        for level, (wide, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            for _ in range(2):
                yield from self._residual(width, wide, depth, 2**level)
                width = wide
                passed.append(wide)
            if level + 1 < len(self.widths):
                yield Convolution(num_inputs=wide, num_outputs=wide, shrink=2 ** (level + 1))
                passed.append(wide)
        bottom = 2 ** (len(self.widths) - 1)
        yield from self._residual(width, width, self.depths[-1], bottom)
        yield from self._residual(width, width, 0, bottom)
        for level, (wide, depth) in reversed(list(enumerate(zip(self.widths, self.depths, strict=True)))):
            for _ in range(3):
                yield from self._residual(width + passed.pop(), wide, depth, 2**level)
                width = wide
            if level:
                yield Convolution(num_inputs=wide, num_outputs=wide, shrink=2 ** (level - 1))
        yield Convolution(num_inputs=width, num_outputs=self.channels)

    def _residual(self, inputs: int, width: int, depth: int, shrink: int) -> Iterator[Convolution | Block]:
        """A residual block of two convolutions, then ``depth`` transformer blocks between two products."""
        yield Convolution(num_inputs=inputs, num_outputs=width, shrink=shrink)
        yield Convolution(num_inputs=width, num_outputs=width, shrink=shrink)
        if inputs != width:
            yield Convolution(num_inputs=inputs, num_outputs=width, kernel=1, shrink=shrink)
        if depth:
            yield from [Convolution(num_inputs=width, num_outputs=width, kernel=1, shrink=shrink)] * 2
            yield from [
                Block(
                    kind="cross",
                    count=1,
                    width=width,
                    num_heads=width // self.head_size,
                    ffn_size=4 * width,
                    is_gated=True,
                    cross_width=self.text_width,
                    shrink=shrink,
                )
            ] * depth

    def blocks(self) -> tuple[Block, ...]:
        """Its transformer blocks, equal ones counted."""
        found = Counter(layer for layer in self.layers() if isinstance(layer, Block))
        return tuple(replace(block, count=count) for block, count in found.items())

    def convolutions(self) -> tuple[Convolution, ...]:
        """Its convolutions, one by one."""
        return tuple(layer for layer in self.layers() if isinstance(layer, Convolution))
