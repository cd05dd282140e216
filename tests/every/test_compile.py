"""The translation of engine rooms: what it makes of a source, and that it refuses what it does not know."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = "import math\n\nimport numpy as np\n\nfrom orrery.base.compiled import Floats, Floats2, Ints, compiled\n\n\n"


@pytest.fixture
def translate(tmp_path, monkeypatch):
    """The Cython of a source."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from compile.module import Module
    from compile.room import Room
    from compile.sources import Sources

    def translated(text, **options):
        folder = tmp_path / "orrery" / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_kernel.py").write_text(HEAD + text)
        whole = Module(Room(Sources(tmp_path), ["orrery.toy._kernel"], [], **options)).text({})
        return whole

    return translated


def test_types_follow_what_is_assigned(translate):
    text = translate(
        "LIMIT = 3.0\n\n\n@compiled\ndef total(x: Floats, n: int) -> float:\n    out, k = 0.0, 0\n"
        "    for i in range(n):\n        out += min(x[i], LIMIT)\n        k = i // 2\n    return out / max(k, 1)\n"
    )
    for line in (
        "double toy_total(Floats x, int64_t n)",
        "cdef double out",
        "cdef int64_t k",
        "cdef int64_t i",
        "orrery_min_double(x.at[(i)], 3.0)",
        "k = orrery_floordiv(i, 2)",
        "orrery_float(out)",
    ):
        assert line in text, line


def test_an_index_is_checked_where_asked(translate):
    source = "@compiled\ndef first(x: Floats2) -> float:\n    return x[0, 1]\n"
    assert "orrery_inside(0" not in translate(source)
    assert "x.at[((orrery_inside(0, x.n0))) * x.n1 + (orrery_inside(1, x.n1))]" in translate(source, checks_bounds=True)


def test_what_is_called_is_translated_too(translate):
    text = translate(
        "def half(x: float) -> float:\n    return 0.5 * x\n\n\ndef idle(x):\n    return [x]\n\n\n"
        "@compiled\ndef quarter(x: float) -> float:\n    return half(half(x))\n"
    )
    assert "toy_half(toy_half(x))" in text
    assert "idle" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(x) -> float:\n    return x\n", "argument x of f has no type"),
        ("def f(x: float) -> list:\n    return x\n", "f returns list"),
        ("def f(x: float) -> float:\n    return sorted(x)\n", "sorted cannot be called"),
        ("def f(x: float) -> float:\n    return np.fft(x)\n", "np.fft"),
        ("def f(x: float, y: float = 2.0) -> float:\n    return x\n", "more than plain arguments"),
        ("def f(x: Floats) -> float:\n    y = 0.0\n    y = x\n    return y\n", "meet"),
        ("def f(x: float) -> float:\n    with x:\n        return x\n", "With cannot be translated"),
        ("def f(x: float) -> float:\n    return unknown\n", "unknown is unknown"),
        ("def f(x: dict) -> float:\n    return 1.0\n", "the type dict is unknown"),
    ],
)
def test_what_is_unknown_is_refused_with_its_place(translate, text, message):
    from_head = len(HEAD.splitlines())
    with pytest.raises(Exception, match=message) as refused:
        translate("@compiled\n" + text)
    assert type(refused.value).__name__ == "Refused"
    place = str(refused.value).split(":")[1]
    assert from_head < int(place) <= from_head + 5


def test_every_engine_room_is_compiled():
    from orrery.base.compiled import extension_of

    for room in sorted({p.relative_to(ROOT / "src" / "orrery").parts[0] for p in (ROOT / "src").rglob("_kernel.py")}):
        assert extension_of(room) is not None, f"{room}: run make compile"
