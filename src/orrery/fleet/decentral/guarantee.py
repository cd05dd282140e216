"""Bits that compressing to a share k of the numbers may save, by the longest step that surely converges. [masha-2022]

An extragradient step is 1 / L long and sends two whole messages; L / mu times a logarithm of them are needed. With a
reference point that moves with chance p, a step must be at most sqrt(p) / L' long, where L' bounds how far the estimate
F(w) + C[mean of C(F_m(z) - F_m(w))] strays for a given distance of z and w:

    C keeps k of d numbers at random, times 1 / k:     E |C(x)|^2 = |x|^2 / k, right in the mean
    the mean of n such messages of workers alike:      L'^2 = L^2 (1 + (1 / k - 1) / n)
    compressed once more by the server:                L'^2 / k

so steps are sqrt(p) L / L' times as long as whole messages allow. The reference lags, too: where the pull to the
solution is weak, (1 - p) z + w changes in the mean by the step alone and is 2 - p times z, so 2 - p times as many steps
are needed at one length. Each sends k of a message and, with chance p, a whole one. With p = k and n workers that all
send only up, gain = 1 / ((2 - k) sqrt(k + (1 - k) / n)): it grows with the workers, from 1 / (2 - k) for one to
1 / ((2 - k) sqrt(k)) for very many, and is 1 where everything is kept. Compressed both ways the square root is that of
1 + (1 / k - 1) / n, so the gain is never above 1.
"""

from math import sqrt


def guaranteed_gain(
    kept_frac: float, num_workers: int, participating_frac: float = 1.0, *, compresses_down: bool = True
) -> float:
    """Bits of whole messages over bits of compressed ones for the same error; the reference moves as often as kept."""
    present = max(1.0, participating_frac * num_workers)
    ways = 2.0 if compresses_down else 1.0
    stray = (1.0 + (1.0 / kept_frac - 1.0) / present) * (1.0 / kept_frac if compresses_down else 1.0)
    sent = participating_frac * kept_frac + (kept_frac if compresses_down else 0.0) + ways * kept_frac
    return 2.0 * ways / (sent * (2.0 - kept_frac) * sqrt(stray / kept_frac))
