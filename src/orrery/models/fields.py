"""A config.json as its reader sees it: look-ups by key that check what they find and say what to write instead."""

from collections.abc import Mapping
from typing import Any, cast

from orrery.base.errors import ScenarioError

MOST = {
    "num_hidden_layers": 10_000,
    "n_layer": 10_000,
    "n_layers": 10_000,
    "num_layers": 10_000,
    "hidden_size": 1_000_000,
    "n_embd": 1_000_000,
    "d_model": 1_000_000,
}
"""Largest sizes that can be meant seriously: some ten times the largest published ones (126 layers, 53,248 wide)."""

MAX_BY_WORD = (("_size", 100_000_000), ("head", 100_000), ("expert", 100_000))
"""The same for keys that hold a word; the first that is found."""

MAX_ELSE = 1_000_000_000

MAX_LETTERS = 10_000
"""Most letters of a text: patterns have a letter for each layer."""

MAX_SHOWN = 80
"""Letters of a value that an error repeats."""


class Watched(dict[str, Any]):
    """Keys and values that remember which keys were asked for."""

    def __init__(self, values: Mapping[str, Any], reads: set[str]) -> None:
        super().__init__(values)
        self.reads = reads

    def get(self, key: str, default: Any = None, /) -> Any:
        self.reads.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.reads.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.reads.add(str(key))
        return super().__contains__(key)


class Fields:
    """The keys of one config (or of one table in it); ``where`` names the file for error messages, ``reads`` collects
    the keys that its reader asked for."""

    __slots__ = ("data", "reads", "where")

    def __init__(self, data: Mapping[str, Any], where: str, reads: set[str] | None = None) -> None:
        self.reads: set[str] = set() if reads is None else reads
        self.data, self.where = Watched(data, self.reads), where

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def wrong(self, key: str, got: object, write: str) -> ScenarioError:
        """The error that says which file, which key, what stood there, and what to write."""
        text = repr(got)
        shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
        return ScenarioError(f"{self.where}: {key}: got {shown}; write {write}.")

    def _first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        self.reads.update(keys)  # of several names for one thing a config may state more than one
        for key in keys:
            if self.data.get(key) is not None:
                return key, self.data[key]
        return keys[0], None

    def size(self, *keys: str, default: int | None = None, least: int = 1) -> int:
        """A whole number under the first of ``keys`` that is there; ``default`` where none is."""
        key, value = self._first(keys)
        if value is None:
            if default is None:
                raise ScenarioError(f'{self.where}: {" or ".join(keys)} is missing; write "{key}": a whole number.')
            return default
        most = MOST.get(key) or next((most for word, most in MAX_BY_WORD if word in key), MAX_ELSE)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(key, value, f"a whole number from {least} to {most}")
        return value

    def count(self, *keys: str, default: int = 0) -> int:
        """Like ``size``, but zero is allowed and the usual default."""
        return self.size(*keys, default=default, least=0)

    def number(self, *keys: str, default: float) -> float:
        """A number of any sign."""
        key, value = self._first(keys)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_ELSE:
            raise self.wrong(key, value, "a number")
        return float(value)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """true or false."""
        key, value = self._first(keys)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            raise self.wrong(key, value, "true or false")
        return bool(value)

    def word(self, *keys: str, default: str = "") -> str:
        """Text."""
        key, value = self._first(keys)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > MAX_LETTERS:
            raise self.wrong(key, value, f"text in quotes, of at most {MAX_LETTERS:,} letters")
        return value

    def items(self, *keys: str) -> tuple[Any, ...]:
        """A list; empty where there is none."""
        key, value = self._first(keys)
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            raise self.wrong(key, value, "a list")
        return tuple(cast("list[Any]", value))

    def words(self, *keys: str) -> tuple[str, ...]:
        """A list of words."""
        found = self.items(*keys)
        if not all(isinstance(x, str) for x in found):
            raise self.wrong(keys[0], found[:4], "a list of words")
        return found

    def sizes(self, *keys: str) -> tuple[int, ...]:
        """A list of whole numbers, none negative."""
        found = self.items(*keys)
        if not all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= MAX_ELSE for x in found):
            raise self.wrong(keys[0], found[:4], "a list of whole numbers")
        return found

    def table(self, *keys: str) -> "Fields | None":
        """A table inside this one, or None."""
        key, value = self._first(keys)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, "a table of keys and values")
        return Fields(cast("Mapping[str, Any]", value), f"{self.where}: {key}")

    def with_defaults(self, **defaults: Any) -> "Fields":
        """The same keys, with values for those that are missing."""
        merged = {**defaults, **{k: v for k, v in self.data.items() if v is not None}}
        return Fields(merged, self.where, self.reads)

    def divide(self, whole: int, key_whole: str, by: int, key_by: str) -> int:
        """whole / by, which must come out even."""
        if whole % by:
            raise ScenarioError(
                f"{self.where}: {key_whole} = {whole} does not divide by {key_by} = {by}; "
                f"write a multiple, or state head_dim."
            )
        return whole // by

    def kinds(self, num_layers: int, known: tuple[str, ...], *, key: str = "layer_types") -> tuple[str, ...]:
        """Kind of each layer, in words that its family knows; empty where the config does not say."""
        if not (found := self.words(key)):
            return ()
        if unknown := set(found) - set(known):
            raise self.wrong(key, min(unknown), "one of " + ", ".join(known))
        return self.per_layer(found, key, num_layers)

    def per_layer(self, values: tuple[Any, ...], key: str, num_layers: int) -> tuple[Any, ...]:
        """``values`` if there is one for each layer, else the error that says so."""
        if len(values) < num_layers:
            raise self.wrong(key, f"{len(values)} entries", f"one for each of the {num_layers} layers")
        return values[:num_layers]
