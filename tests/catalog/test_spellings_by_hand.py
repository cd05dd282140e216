"""Spellings of models, paths, and files of requests at their edges: by hand."""

from pathlib import Path

import pytest

from orrery.base.errors import FactError, ScenarioError
from orrery.catalog import models
from orrery.catalog.trace_table import NO_ARRIVALS, Row, gathered


def test_an_underscore_between_digits_is_a_dot_or_a_separator():
    assert models._readings("phi-1_5") == ("phi-1.5", "phi-1_5")
    assert models._readings("qwen_3") == ("qwen_3",)
    assert models._squeeze("Qwen-2.5_7B") == "qwen2.57b"
    assert models._squeeze("a.b-1.c") == "ab1c"
    assert models._without_organisation("a/b/c") == "c"


def test_words_that_leave_the_architecture_alone_are_peeled_from_the_end(monkeypatch):
    monkeypatch.setattr(models, "TUNED", frozenset({"instruct", "chat"}))
    monkeypatch.setattr(models, "IN_NAMES", {"fp8": "fp8"})
    assert list(models._peeled("org/llama-3-chat-instruct-fp8")) == ["llama3chatinstruct", "llama3chat", "llama3"]
    assert list(models._peeled("chat")) == []  # one word stays
    assert models._stripped("llama-instruct-3-fp8") == "llama3"


def test_a_spelling_without_dots_counts_where_one_model_has_it(monkeypatch):
    monkeypatch.setattr(models, "_exact", lambda: {"a1.3b": "org/a", "b13b": "org/b", "b1.3b": "org/c"})
    monkeypatch.setattr(models, "_loose", lambda: {"a13b": "org/a"})
    assert models._dotless.__wrapped__() == {"a13b": "org/a"}


@pytest.mark.parametrize(
    ("text", "is_path"),
    [("./a", True), ("/a", True), ("~/a", True), ("a.json", True), ("llama-3.1-8b", False), ("x" * 5000, False)],
)
def test_texts_that_look_like_paths(text, is_path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert models._looks_like_path(text) is is_path
    (tmp_path / "llama-3.1-8b").mkdir()
    assert models._looks_like_path("llama-3.1-8b") is False
    (tmp_path / "llama-3.1-8b" / "config.json").write_text("{}")
    assert models._looks_like_path("llama-3.1-8b") is True
    (tmp_path / "file").write_text("{}")
    assert models._looks_like_path("file") is True


def test_a_model_without_sources_or_a_config_is_refused(tmp_path, monkeypatch):
    texts = {
        "ok": "[sources.a]\ntitle = 't'\n[published]\nx = 1\ny = 2\nquantization_config = 3\n",
        "like": "same_as = 'ok'\nnull = ['z']\n[sources.a]\ntitle = 't'\n[published]\ny = 5\n",
        "bare": "[published]\nx = 1\n",
        "empty": "[sources.a]\ntitle = 't'\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.setattr(models, "_files", lambda: {name: tmp_path / f"{name}.toml" for name in texts})
    assert models.published_config("like") == {"x": 1, "y": 5, "z": None}
    assert models.published_config("ok") == {"x": 1, "y": 2, "quantization_config": 3}
    assert models.published_parameters("ok") is None
    for name in ("bare", "empty"):
        with pytest.raises(FactError, match=f"{name}.toml"):
            models.published_config(name)


def rows(*arrivals):
    return [Row(arrival_s=at, input_tokens=10 + k, output_tokens=5) for k, at in enumerate(arrivals)]


@pytest.mark.parametrize(
    ("arrivals", "notes"),
    [((3.0,), 0), ((3.0, 3.0), 1), ((3.0, 4.0), 0), ((4.0, 3.0), 1), ((3.0, 3.0, 3.0), 1)],
)
def test_arrivals_begin_at_zero_and_in_order(arrivals, notes):
    found = gathered(Path("mine.csv"), rows(*arrivals))
    assert found.arrival_s.tolist() == sorted(at - min(arrivals) for at in arrivals)
    assert len(found.notes) == notes
    if len(set(arrivals)) == 1 < len(arrivals):
        assert NO_ARRIVALS in found.notes[0]
    if list(arrivals) != sorted(arrivals):
        assert "1 of 2 rows come before" in found.notes[0]
        assert found.input_tokens.tolist() == [11, 10]


def test_a_file_without_requests_is_refused():
    with pytest.raises(ScenarioError, match="holds no request"):
        gathered(Path("mine.csv"), [])
