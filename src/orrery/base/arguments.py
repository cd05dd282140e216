"""Arguments of public functions, held against the types that the function names: a wrong one is refused in a sentence.

Only doors are guarded: what the house calls in its loops stays bare.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from orrery.base.errors import WrongType, shown

P = ParamSpec("P")
R = TypeVar("R")

WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which raises WrongType where an argument is not what its annotation says."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        shape, hints = _shape(function)
        try:
            bound = shape.bind(*args, **kwargs)
        except TypeError as error:  # missing, too many, or of an unknown name
            raise WrongType(f"{function.__name__}: {error}; it takes {', '.join(shape.parameters)}.") from None
        for name, given in bound.arguments.items():
            for text, value in _each(name, given, shape.parameters[name].kind):
                if not is_of(value, hints[name]):
                    raise wrong_type(function.__name__, text, value, words_of(hints[name]))
        return function(*args, **kwargs)

    return checked


def wrong_type(function: str, name: str, value: object, expected: str) -> WrongType:
    """The message for an argument of the wrong type: the type that was passed, and what to pass instead."""
    text = shown(value)
    return WrongType(f"{function}: {name}: got {text} of type {type(value).__name__}; give {expected}.")


def is_of(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says, down to the items of lists; numbers of numpy are numbers."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin in (Union, UnionType):
        return any(is_of(value, one) for one in inner)
    if origin in (Sequence, list, tuple):
        return _is_sequence(value, inner)
    if origin is Mapping or origin is dict:
        return isinstance(value, Mapping) and all(
            is_of(k, inner[0]) and is_of(v, inner[1]) for k, v in cast("Mapping[Any, Any]", value).items()
        )
    if origin is Callable:
        return callable(value)
    kind = hint if origin is None else origin
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    return value is None if kind is NoneType else isinstance(value, kind)


NUMBERS: dict[Any, type] = {int: Integral, float: Real}


def _is_sequence(value: Any, inner: tuple[Any, ...]) -> bool:
    """A text is a sequence of letters, but nobody means it so."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    items = cast("Sequence[Any]", value)
    if len(inner) > 1 and inner[-1] is not Ellipsis:
        return len(items) == len(inner) and all(map(is_of, items, inner))
    kind: Any = inner[0] if inner else Any
    return all(is_of(item, kind) for item in items)


def words_of(hint: Any) -> str:
    """An annotation as text: ``a list of paths or texts``."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(words_of(one) for one in inner)
    if origin in (Sequence, list, tuple):
        return f"a list, each item {words_of(inner[0])}"
    if origin is Mapping or origin is dict:
        return "a mapping of names to values"
    if origin is Callable:
        return "a function"
    kind = hint if origin is None else origin
    return WORDS.get(kind) or f"an object of type {kind.__name__}"


def _each(name: str, given: Any, kind: Any) -> Iterator[tuple[str, Any]]:
    """The values that stand under one parameter, each with its name."""
    if kind is Parameter.VAR_POSITIONAL:
        yield from ((f"{name}[{i}]", value) for i, value in enumerate(given))
    elif kind is Parameter.VAR_KEYWORD:
        yield from given.items()
    else:
        yield name, given


@cache
def _shape(function: Callable[..., Any]) -> tuple[Signature, dict[str, Any]]:
    """A function's parameters, and the type of each; anything goes where none is named, and for arrays."""
    shape, hints = signature(function), get_type_hints(function)
    return shape, {name: _plain(hints.get(name, Any)) for name in shape.parameters}


def _plain(hint: Any) -> Any:
    """The annotation; numpy's own look further than a type does, and its functions say what is no array."""
    return Any if "numpy._typing" in str(hint) else hint
