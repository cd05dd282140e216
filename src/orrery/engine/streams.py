"""Named streams of random numbers: what is drawn for one thing never changes what is drawn for another.

Two designs that are compared get the same streams by the same names, so that they see the same traffic (common
random numbers [law-2015]): only what differs between them makes their answers differ.
"""

import zlib

import numpy as np

from orrery.base.errors import ScenarioError


def stream(seed: int, name: str) -> np.random.Generator:
    """The stream called ``name`` ("arrivals", "lengths/input", …) of the run with that seed: PCG64, always the same.

    >>> float(stream(0, "arrivals").random()) == float(stream(0, "arrivals").random())
    True
    """
    if seed < 0:
        raise ScenarioError(f"seed: got {seed}; write a whole number from 0.")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(name.encode())])))
