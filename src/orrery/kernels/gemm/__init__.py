"""Dense matrix products: tiles, waves, the memory roof and the cache."""

from orrery.kernels.gemm.rule import Terms, explain, predict

__all__ = ["Terms", "explain", "predict"]
