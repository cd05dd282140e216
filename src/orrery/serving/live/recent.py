"""Small numbers for names that keep coming for ever: a table of the most recent ones, as routers keep them."""

from collections import OrderedDict
from collections.abc import Hashable

MAX_NAMES = 65_536


class LruSlots:
    """Numbers 0, 1, … for names; when all are taken, the name that was not heard of for longest gives up its own."""

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._numbers: OrderedDict[Hashable, int] = OrderedDict()

    def number_of(self, name: Hashable) -> tuple[int, bool]:
        """The number of a name, and whether it is new to it: what was known under the number is to be forgotten."""
        found = self._numbers.get(name)
        if found is not None:
            self._numbers.move_to_end(name)
            return found, False
        number = len(self._numbers)
        if number >= self._most:
            _, number = self._numbers.popitem(last=False)
        self._numbers[name] = number
        return number, True
