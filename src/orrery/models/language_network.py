"""A language model as a chain of units: its embedding, its layers and its head, for one pass over a prompt.

Between units the hidden states of all tokens cross; before the first, the tokens' numbers do.
"""

from collections.abc import Iterator

from orrery.base.errors import OutOfRange
from orrery.models.model import Block, Model, SoftmaxAttention
from orrery.models.networks import Convolution, Layer, Network, SelfAttention, Unit

TOKEN_BYTES = 4.0


def language_network(model: Model, tokens: int) -> Network:
    """The units of a dense model for a prompt of so many tokens; the head runs on the last token alone."""
    blocks = (*model.encoder, *model.blocks)
    if any(not isinstance(block.mixer, SoftmaxAttention) or block.experts for block in blocks) or (
        model.encoder and model.blocks
    ):
        raise OutOfRange(f"{model.name}: split takes dense models with one stack of softmax attention.")
    units = tuple(_units(model, blocks, tokens))
    return Network(name=model.name, units=units, num_elements=tokens, element_bytes=TOKEN_BYTES)


def _units(model: Model, blocks: tuple[Block, ...], tokens: int) -> Iterator[Unit]:
    width, index = model.hidden_size, 0
    for block in blocks:
        layers = tuple(_layers(block, tokens))
        for _ in range(block.count):
            index += 1
            yield Unit(name=f"layer{index}", layers=layers, num_results=tokens * width, num_channels=width)
    if model.head:
        k, n = model.head.in_features, model.head.out_features
        head = Convolution(positions=1, inputs=k, outputs=n)
        yield Unit(name="head", layers=(head,), num_results=n, num_channels=n)


def _layers(block: Block, tokens: int) -> Iterator[Layer]:
    for x in block.linears:
        yield Convolution(positions=tokens, inputs=x.in_features, outputs=x.out_features, groups=x.groups)
    mixer = block.mixer
    assert isinstance(mixer, SoftmaxAttention)
    yield SelfAttention(
        tokens=tokens,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_size=mixer.head_size,
        is_causal=mixer.is_causal,
    )
