"""Rotations that spread outliers over many features: Hadamard transforms and orthogonal matrices.

    from orrery.numerics.rotations.hadamard import matrix, signs, transform
    from orrery.numerics.rotations.orthogonal import random_orthogonal

A rotation R is folded into the weights: (x R)(W R)^T = x W^T, so the product stays and only what is rounded changes.
"""
