"""Which points others reach in every count, one comparison at a time."""

from orrery.base.compiled import Flags, Floats2, compiled


@compiled
def mark_reached(values: Floats2, by: Floats2, out: Flags) -> None:
    """Sets ``out[i]`` where some row of ``by`` (m, k) is no larger than row i of ``values`` (n, k) in every column.

    The row that struck out the last one is tried first: neighbours tend to fall to the same.
    """
    last = 0
    for i in range(values.shape[0]):
        for n in range(by.shape[0]):
            j = last if n == 0 else (n - 1 if n <= last else n)
            is_below = True
            for k in range(values.shape[1]):
                if by[j, k] > values[i, k]:
                    is_below = False
                    break
            if is_below:
                out[i] = True
                last = j
                break
