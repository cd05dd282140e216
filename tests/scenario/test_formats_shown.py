"""``orrery formats list`` and ``show``, and what a format is timed as."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import OutOfRange
from orrery.scenario import compare_formats, formats


def test_formats_elements_and_spellings_are_listed_apart():
    listed = formats.list_formats().to_json()
    assert {row["name"] for row in listed["formats"]} >= {"bf16", "nvfp4"}
    assert {row["group"] for row in listed["elements"]} == {"element"}
    eight = next(row for row in listed["formats"] if row["name"] == "fp8")
    assert (eight["element"], eight["bits_per_element"], eight["highest"]) == ("e4m3fn", 8, 448.0)


def test_what_a_format_shows():
    """A curve of 64 points over 8 binades: the first covers an eighth of a binade."""
    shown = formats.show_format("nvfp4")
    assert len(shown.curve) == 64
    assert shown.curve[0][0] == pytest.approx(1 / 16)
    assert shown.curve[-1][0] == pytest.approx(8 - 1 / 16)
    assert not any("is taken as" in note or "a spelling" in note for note in shown.notes)
    assert shown.native_on["b200"] == "nvfp4"
    assert "h100-sxm" not in shown.native_on
    assert formats.show_format("int4_weight_only").native_on == {}
    spelled = formats.show_format("int3/16:fp16")
    assert spelled.native_on == {}
    assert any(note.startswith("a spelling") for note in spelled.notes)
    nan = formats.show_format("e4m3fn/none").to_json()
    assert (nan["nan_codes"], nan["infinity_codes"]) == ([127, 255], [])


def test_a_device_whose_table_lacks_a_format_does_not_multiply_it(monkeypatch):
    def known(name):
        def peak(rates):
            if name == "none":
                raise OutOfRange("no rate")
            return ("fp8", 1.0) if rates[0] == "fp8" else ("bf16", 1.0)

        return SimpleNamespace(name=name, peak_flops_per_s=peak)

    monkeypatch.setattr(formats, "device_names", lambda: ("a", "b", "none"))
    monkeypatch.setattr(formats, "get_device", known)
    monkeypatch.setattr(formats, "activations_for", lambda name, device: name)
    monkeypatch.setattr(formats, "compute_format", lambda w, a, device: "bf16" if device.name == "b" else w)
    assert formats._native_on(formats.parse_format("fp8")) == {"a": "fp8"}


def test_a_format_is_timed_as_what_multiplies_it():
    """int8 reads 8 bits where fp8 has 8; bf16 twice as many, which is more than a tenth apart."""

    def said(name, runs_as, known=None):
        notes = []
        format = formats.parse_format(name)
        speed = SimpleNamespace(runs_as=runs_as)
        compare_formats._say_what_runs(
            format, formats.parse_format(known or name), speed, SimpleNamespace(name="d"), notes
        )
        return [note.split(": ", 1)[1][:30] for note in notes]

    assert said("fp8", "fp8") == []
    assert said("fp8", "int8") == ["d does not multiply it; timed "]
    assert said("fp8", "bf16") == ["d does not multiply it; timed ", "bf16 reads 16 bits an element,"]
    assert said("e4m3fn/tensor", "fp8", "fp8")[0].startswith("the same numbers as fp8")
