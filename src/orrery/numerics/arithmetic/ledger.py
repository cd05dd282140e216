"""Counts of a running algorithm: elements through memory, and arithmetic by name and type.

An array that is read through a ledger stays watched: whatever NumPy computes from it is counted too. So the traffic of
a softmax is not stated beside it but comes out of it, and an integer algorithm can show that it never met a float.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Counts of one run."""

    num_elements_read: int = 0
    num_elements_written: int = 0
    operations: Counter[str] = field(default_factory=Counter[str])  # elements that went through each, by its name
    types: set[str] = field(default_factory=set[str])  # that were computed with or came out

    def read(self, stored: Array) -> "Watched":
        """The array as it comes from memory, watched from now on."""
        self.num_elements_read += stored.size
        return self.watch(stored)

    def watch(self, held: Array) -> "Watched":
        """An array that is in registers already: watched, not counted as read."""
        watched = np.asarray(held).view(Watched)
        watched.ledger = self
        return watched

    def enter(self, operation: str, count: int, takes_product: bool) -> None:
        """One operation on so many elements; an addition to a fresh product is fused with it, as processors do."""
        if takes_product and operation in ("add", "subtract"):
            self.operations["multiply"] -= count
            operation = "multiply-add"
        self.operations[operation] += count

    def write(self, held: Array) -> Array:
        """The array as it goes to memory, no longer watched."""
        self.num_elements_written += held.size
        return np.asarray(held)

    @property
    def num_operations(self) -> int:
        """All instructions, one an element each; a reduction does one for each element that goes in."""
        return self.operations.total()


class Watched(np.ndarray[Any, np.dtype[Any]]):
    """An array whose arithmetic is entered in a ledger."""

    ledger: Ledger | None
    is_product: bool = False  # of the multiplication just before

    def __array_finalize__(self, obj: object) -> None:
        self.ledger = getattr(obj, "ledger", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        ledger = next(i.ledger for i in inputs if isinstance(i, Watched))
        plain: list[Any] = [np.asarray(i) if isinstance(i, Watched) else i for i in inputs]
        result: Any = getattr(ufunc, method)(*plain, **options)
        if ledger is None:
            return result
        is_fused = method == "__call__" and any(isinstance(i, Watched) and i.is_product for i in inputs)
        ledger.enter(ufunc.__name__, np.size(plain[0] if method == "reduce" else result), is_fused)
        ledger.types.update(str(x.dtype) for x in (*plain, result) if hasattr(x, "dtype"))
        watched = ledger.watch(result)
        watched.is_product = ufunc is np.multiply
        return watched
