"""Costs of a runtime of speech models: launches of its host, passes beside the products, and its windows.

A decoder step is launched operator by operator while the device works on what was launched before, so it takes the
longer of the two:

    operators = layers x operators of a layer + operators of a step + windows x operators of each
    step = max(device, operator_s x operators + layers x layer_s + windows x sequence_s) + node_s x operators + step_s

A runtime that makes a graph of all operators before the device may begin, and makes it anew for each step, adds
``node_s`` for every one of them instead of launching beside the device (``operator_s``). Operators are counted in the
runtime's source; the seconds of one are the same for all runtimes of its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from statistics import NormalDist

from orrery.base.cost import Spread
from orrery.base.sources import Fact
from orrery.models.speech import WINDOW_S

LENGTH_SPREAD = 0.2
"""Standard deviation of the tokens of a window over their mean. Assumed."""

BLOM = 0.375
"""Blom's constant for the expected largest of some draws from a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpeechRuntime:
    """One runtime: passes and launches beside the products, beams, windows, and seconds of the host."""

    name: str
    title: str = ""
    operator_s: float = 0.0  # of the host, for one operator that it launches while the device works
    node_s: float = 0.0  # of the host, for one operator of a graph that it makes before the device begins
    step_s: float = 0.0  # of the host, for choosing a step's tokens while the device waits
    sequence_s: float = 0.0  # of the host, for one sequence of a step
    layer_s: float = 0.0  # on the device, between the kernels of a decoder layer
    num_encoder_operators: float = 0.0  # of a layer
    num_decoder_operators: float = 0.0  # of a layer
    num_beam_operators: float = 0.0  # of a decoder layer, more where several beams exchange their caches
    num_step_operators: float = 0.0  # of a step, outside its layers
    num_window_operators: float = 0.0  # of a step, for each window
    window_operator_ratio: float = 1.0  # the host's time of one of those over that of an operator in a layer
    num_narrow_passes: float = 4.0  # of an encoder layer, over as many features as the model is wide
    num_wide_passes: float = 1.0  # the same over those of the feed-forward part
    pass_bytes: float = 2.0  # of one element that a pass reads or writes
    fuses_attention: bool = True  # otherwise the encoder's scores go through memory
    casts_weights: bool = False  # weights are kept in 32 bits and rounded anew in every step
    shares_cross_keys: bool = True  # beams of a window read the encoder's keys once
    waits_for_longest: bool = True  # windows of a batch end together
    num_beams: int = 1
    advance_s: float = 30.0  # of a recording from one window to the next
    timestamp_tokens: float = 0.0  # of a window, one window after the other
    batched_timestamp_tokens: float = 0.0  # the same for several windows at once
    preparation_ratio: float = 0.0  # seconds of the host for a second of sound: decoding, and the mel spectrum
    spread: Spread | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])

    def decoder_operators(self, layers: int, windows: int, beams: int) -> float:
        """Operators of one decoder step, each as long as one in a layer."""
        each = self.num_decoder_operators + (self.num_beam_operators if beams > 1 else 0.0)
        of_windows = windows * self.num_window_operators * self.window_operator_ratio
        return layers * each + self.num_step_operators + of_windows

    def decoder_host_s(self, layers: int, windows: int, beams: int) -> float:
        """Seconds in which the host launches one decoder step."""
        return self.operator_s * self.decoder_operators(layers, windows, beams) + self.sequence_s * windows * beams

    def decoder_graph_s(self, layers: int, windows: int, beams: int) -> float:
        """Seconds in which the host makes the graph of one decoder step, and the device waits."""
        return self.node_s * self.decoder_operators(layers, windows, beams)

    def encoder_host_s(self, layers: int) -> float:
        """Seconds in which the host launches the encoder."""
        return self.operator_s * layers * self.num_encoder_operators

    def encoder_graph_s(self, layers: int) -> float:
        """Seconds in which the host makes the encoder's graph, and the device waits."""
        return self.node_s * layers * self.num_encoder_operators

    def num_windows(self, audio_s: float) -> int:
        """Windows of a recording: one of 30 s, and one more for each advance."""
        return 1 + max(0, ceil((audio_s - WINDOW_S) / self.advance_s))

    def tokens(self, mean: float, windows: int, most: int) -> float:
        """Steps of a batch of windows whose texts have so many tokens on average: those of the longest."""
        if windows <= 1 or not self.waits_for_longest:
            return min(mean, float(most))
        return min(longest(mean, windows), float(most))


def longest(mean: float, count: int) -> float:
    """The expected longest of some texts."""
    if count <= 1:
        return mean
    share = (count - BLOM) / (count + 1.0 - 2.0 * BLOM)
    return mean * (1.0 + LENGTH_SPREAD * NormalDist().inv_cdf(share))


KERNELS_ALONE = SpeechRuntime(name="kernels", title="Kernels one after the other, without a host")
"""The least that a device needs: no launch is waited for, attention is fused, sound needs no preparation."""
