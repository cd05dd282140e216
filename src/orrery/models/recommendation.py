"""Models that rank items (Naumov et al. 2019, arXiv 1906.00091): dense features and tables of embeddings.

Dense features pass a bottom perceptron to a vector as wide as an embedding; each table gives the sum of the rows that
are looked up. The vectors meet by dot products of every pair, or in cross layers of low rank (Wang et al. 2020, arXiv
2008.13535: two products each), and a top perceptron makes the score.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from orrery.models.networks import Convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationModel:
    """Sizes of one model; ``rows`` and ``lookups`` have an entry for each table."""

    name: str
    width: int  # of an embedding
    num_dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    interaction: str  # "dot" or "cross"
    cross_layers: int
    cross_rank: int
    rows: tuple[int, ...]
    lookups: tuple[int, ...]

    @property
    def num_tables(self) -> int:
        """Tables of embeddings."""
        return len(self.rows)

    @property
    def met_width(self) -> int:
        """Features that enter the top: all vectors side by side, or the dense one and a product of every pair."""
        vectors = self.num_tables + 1
        return vectors * self.width if self.interaction == "cross" else self.width + vectors * (vectors - 1) // 2

    def products(self) -> Iterator[Convolution]:
        """The products of one sample; a dense product has one position."""
        yield from _perceptron((self.num_dense, *self.bottom))
        vectors = self.num_tables + 1
        for _ in range(self.cross_layers):
            yield Convolution(positions=1, inputs=self.met_width, outputs=self.cross_rank)
            yield Convolution(positions=1, inputs=self.cross_rank, outputs=self.met_width)
        if self.interaction == "dot":
            yield Convolution(positions=vectors, inputs=self.width, outputs=vectors)
        *hidden, score = _perceptron((self.met_width, *self.top))
        yield from (*hidden, replace(score, has_activation=False))

    @property
    def num_parameters(self) -> int:
        """Weights of all tables and products; the dot products have none."""
        dense = sum(x.num_weights for x in self.products() if x.positions == 1)
        return self.width * sum(self.rows) + dense


def _perceptron(widths: tuple[int, ...]) -> Iterator[Convolution]:
    for inputs, outputs in pairwise(widths):
        yield Convolution(positions=1, inputs=inputs, outputs=outputs, has_activation=True)
