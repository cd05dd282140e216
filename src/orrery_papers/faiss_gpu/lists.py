"""Search among vectors on one device: all distances, or inverted lists of product-quantised codes.

All distances of a query are one row of a product, which is written and read once more to select the nearest. With
inverted lists the same is done for the lists' centres. For every list that is probed, a table of distances from the
query's residual to all code words is computed, written and read; codes are read, one table entry is looked up for each
byte of a code, and the sums are written and read to be selected from. Johnson, Douze and Jégou, arXiv 1702.08734.
"""

from dataclasses import dataclass

FLOAT_BYTES = 4.0
NUM_WORDS = 256.0
"""Code words of one byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDevice:
    """The roofs that a search runs into."""

    flops_per_s: float  # of products in FP32
    bandwidth_bytes_per_s: float
    num_lookups_per_s: float  # in on-chip memory, all processors together

    def streamed_s(self, num_bytes: float) -> float:
        """Bytes through the memory."""
        return num_bytes / self.bandwidth_bytes_per_s

    def all_distances_s(self, num_vectors: float, num_features: float) -> float:
        """One query against all vectors, and the selection of the nearest."""
        products = 2.0 * num_vectors * num_features / self.flops_per_s
        return products + self.streamed_s(2.0 * FLOAT_BYTES * num_vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvertedLists:
    """An index: vectors in lists by their nearest centre, each as a code of so many bytes."""

    num_vectors: float
    num_features: float  # of a vector, as it is coded
    num_lists: float
    code_bytes: float

    def query_s(self, device: SearchDevice, num_probes: float, shard_frac: float = 1.0) -> float:
        """One query on a device that holds that share of every list."""
        centres_s = device.all_distances_s(self.num_lists, self.num_features)
        return centres_s + num_probes * (self.table_s(device) + self.scan_s(device, shard_frac))

    def table_s(self, device: SearchDevice) -> float:
        """The table of one list: computed, written, read."""
        products = 2.0 * NUM_WORDS * self.num_features / device.flops_per_s
        return products + device.streamed_s(2.0 * FLOAT_BYTES * NUM_WORDS * self.code_bytes)

    def scan_s(self, device: SearchDevice, shard_frac: float) -> float:
        """One list on one device: the longer of codes and look-ups, then sums to select from."""
        codes = shard_frac * self.num_vectors / self.num_lists
        read_s = max(device.streamed_s(codes * self.code_bytes), codes * self.code_bytes / device.num_lookups_per_s)
        return read_s + device.streamed_s(2.0 * FLOAT_BYTES * codes)
