"""Networks as chains of units that a device may hand over between: their products and what leaves them.

A unit has one input and one output, so a residual unit is one. Norms of batches and activations run with the product
before them; the layer norms and GELUs of transformers stand beside it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution at ``positions`` pixels of its output; a fully connected layer has one position and one tap.

    ``groups`` cut inputs and outputs into as many convolutions of their own; depthwise has one for each channel.
    """

    positions: int
    inputs: int
    outputs: int
    taps: int = 1
    groups: int = 1
    has_batch_norm: bool = False  # behind it, by channel
    has_activation: bool = False  # behind it, or behind the addition that follows

    @property
    def num_macs(self) -> int:
        """Multiply-adds of one input."""
        return self.positions * self.num_weights

    @property
    def num_weights(self) -> int:
        """Elements of its weights, without biases and norms."""
        return self.taps * self.inputs * self.outputs // self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfAttention:
    """Softmax attention of tokens to each other, without its projections."""

    tokens: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    is_causal: bool

    @property
    def num_macs(self) -> int:
        """Multiply-adds of scores and of weighted values; a causal mask leaves (tokens + 1) / 2 of the tokens."""
        pairs = self.tokens * (self.tokens + 1) // 2 if self.is_causal else self.tokens**2
        return 2 * pairs * self.num_heads * self.head_size

    @property
    def num_weights(self) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWise:
    """A layer norm, which is a kernel of its own, or a GELU, which ends the product before it, over rows of tokens."""

    kind: Literal["layer_norm", "gelu"]
    tokens: int
    width: int

    @property
    def num_macs(self) -> int:
        """None."""
        return 0

    @property
    def num_weights(self) -> int:
        """None that are counted."""
        return 0


Layer = Convolution | SelfAttention | RowWise


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Layers between two places where the network can be cut.

    ``branch`` is the classifier of an early exit behind the unit; none is a pooling to one position and a fully
    connected layer to the network's results.
    """

    name: str
    layers: tuple[Layer, ...]
    num_results: int  # elements that leave it, behind its pooling
    num_channels: int  # of them
    num_additions: int = 0  # of what entered it, or a half of it, to results
    branch: tuple[Layer, ...] = ()

    @property
    def num_weights(self) -> int:
        """Elements of its weights."""
        return sum(layer.num_weights for layer in self.layers)

    def squeezed(self, channels: int) -> "Bottleneck":
        """An encoder of 1 x 1 to so many channels of what leaves it, and the decoder of 1 x 1 back."""
        positions = self.num_results // self.num_channels
        return Bottleneck(
            encoder=Convolution(positions=positions, inputs=self.num_channels, outputs=channels),
            decoder=Convolution(positions=positions, inputs=channels, outputs=self.num_channels),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Fewer channels between a unit and the next (Eshratifar et al., BottleNet, arXiv 1902.01000)."""

    encoder: Convolution
    decoder: Convolution

    @property
    def num_results(self) -> int:
        """Elements between the two."""
        return self.encoder.positions * self.encoder.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Units in their order; ``num_elements`` enter, of ``element_bytes`` each where they are sent as they are."""

    name: str
    units: tuple[Unit, ...]
    num_elements: int
    element_bytes: float = 1.0

    @property
    def num_macs(self) -> int:
        """Multiply-adds of one input."""
        return sum(layer.num_macs for unit in self.units for layer in unit.layers)

    @property
    def num_weights(self) -> int:
        """Elements of all weights."""
        return sum(unit.num_weights for unit in self.units)

    @property
    def input_bytes(self) -> float:
        """An input as it is sent without compression."""
        return self.num_elements * self.element_bytes

    def branch_behind(self, index: int) -> tuple[Layer, ...]:
        """The classifier of an early exit behind the unit of that index."""
        unit = self.units[index]
        plain = Convolution(positions=1, inputs=unit.num_channels, outputs=self.units[-1].num_results)
        return unit.branch or (plain,)
