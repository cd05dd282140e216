"""Encoder-decoders that transcribe windows of speech (Radford et al. 2022, arXiv 2212.04356).

A window of 30 s is 3,000 frames of a mel spectrum; two convolutions, the second with a stride of two, make 1,500
positions of them. The encoder sees all positions at once; the decoder writes tokens that attend to each other and, in
every layer, to the encoder's positions.
"""

from dataclasses import dataclass

WINDOW_S = 30.0
FRAMES, POSITIONS, MAX_TOKENS = 3000, 1500, 448
CONVOLUTION_TAPS = 3
WIDENS = 4
"""Inner features of a feed-forward part over the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechModel:
    """Sizes of one model."""

    name: str
    width: int
    encoder_layers: int
    decoder_layers: int
    num_heads: int
    vocab: int
    mels: int
    source: str = ""

    @property
    def head_size(self) -> int:
        """Features of a head."""
        return self.width // self.num_heads

    @property
    def num_parameters(self) -> int:
        """Weights of both stacks and embeddings; the head is the token embedding's. Biases and norms are left out."""
        attention, ffn = 4 * self.width**2, 2 * WIDENS * self.width**2
        stem = CONVOLUTION_TAPS * self.width * (self.mels + self.width)
        encoder = self.encoder_layers * (attention + ffn) + POSITIONS * self.width
        decoder = self.decoder_layers * (2 * attention + ffn) + MAX_TOKENS * self.width
        return stem + encoder + decoder + self.vocab * self.width

    @property
    def cache_elements(self) -> int:
        """Keys and values of one window: of the encoder's positions and of the longest text, in every decoder layer."""
        return 2 * self.decoder_layers * self.width * (POSITIONS + MAX_TOKENS)
