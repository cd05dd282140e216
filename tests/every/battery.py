"""One test per rule over many things, which lists every thing that breaks it."""

from collections.abc import Callable, Iterable

import pytest

Check = Callable[..., None]


def over(things: Iterable[object], named: Callable[..., str] = str) -> Callable[[Check], Check]:
    """Make one test of a check that is called with each thing (a tuple: with each of its parts).

    Its failure names every thing that failed, and how. A check that skips leaves out its thing only.
    """
    listed = list(things)
    assert listed, "a battery over nothing checks nothing"

    def of(check: Check) -> Check:
        def test() -> None:
            offenders = [f"{named(*parts)}: {why}" for parts in map(_parts, listed) if (why := _failure(check, parts))]
            assert not offenders, f"{len(offenders)} of {len(listed)}:\n" + "\n".join(offenders)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return of


def _parts(thing: object) -> tuple[object, ...]:
    return thing if type(thing) is tuple else (thing,)


def _failure(check: Check, parts: tuple[object, ...]) -> str:
    """How a check failed, empty where it held."""
    try:
        check(*parts)
    except (pytest.skip.Exception, pytest.xfail.Exception):
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n", 1)[0]
    return ""
