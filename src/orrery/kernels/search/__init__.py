"""Nearest neighbours among many vectors: distances as products, selections as passes, codes as look-ups."""
