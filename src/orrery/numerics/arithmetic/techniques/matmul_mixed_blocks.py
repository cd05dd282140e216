"""Four bits where they do, eight where they must: activations rounded by blocks of channels before they are multiplied.

Blocks without outliers are rounded to four bits and multiplied as W4A4, the others to eight as W4A8; each block has
its own scale a token. Channels are best sorted first, weights with them (``clustered_order``). COMET, arXiv 2410.12168.
"""

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs, round_block, wide_blocks
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Product, checked, exact

NARROW_BITS, WIDE_BITS = 4, 8


def rule(activations: Floats, weights: FewBitWeights, knobs: BlockKnobs) -> Product:
    """Round every block to its width, then multiply; exact but for the rounding."""
    a = checked(activations, weights)
    is_wide = wide_blocks(a, knobs)
    blocks = np.split(a, len(is_wide), axis=1)
    rounded = [round_block(b, WIDE_BITS if wide else NARROW_BITS) for b, wide in zip(blocks, is_wide, strict=True)]
    work = len(a) * weights.codes.size
    counts = Counts(num_multiplies=work, num_adds=work, num_scalings=len(a) * len(weights.codes) * len(is_wide))
    return Product(values=exact(np.concatenate(rounded, axis=1), weights), counts=counts)


TECHNIQUE = Technique(
    name="matmul-mixed-blocks",
    extension_point="numerics.matmul",
    rule=rule,
    knobs=BlockKnobs,
    gains="Most of the work runs at the rate of four-bit units, with the error of eight bits where outliers are.",
    costs="Tiles of two speeds must be dealt out evenly; a scaling for every block of channels.",
    claims=("comet-w4a4kv4",),
    command="orrery kernel gemm --device NAME --m N --n N --k N --activations int4+int8 --wide-frac FRAC",
)
