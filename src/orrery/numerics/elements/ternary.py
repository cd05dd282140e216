"""Ternary: -1, 0, 1 in two bits. Li et al. 2016; BitNet b1.58, arXiv:2402.17764."""

from orrery.numerics.families.lookup import Lookup

ELEMENT = Lookup(name="ternary", bits=2, table=(0.0, 1.0, -1.0))
