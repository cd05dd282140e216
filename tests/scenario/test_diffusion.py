"""Pictures and videos through the command line, a scenario file and Python, and what is refused."""

import json

import pytest
from battery import over

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.scenario.ask import InfeasibleAnswer

FLUX = {"model": "flux-1-dev", "device": "h100-sxm", "ulysses_degree": 4, "num_inference_steps": 28}


def asked(capsys, *words):
    assert run(["estimate", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_way_gives_the_same_numbers(capsys, tmp_path):
    answer = orrery.estimate(**FLUX)
    flags = ["--model", "flux-1-dev", "--device", "h100-sxm", "--ulysses-degree", "4", "--num-inference-steps", "28"]
    typed = asked(capsys, *flags)
    file = tmp_path / "flux.toml"
    file.write_text("".join(f"{k} = {v!r}\n" for k, v in FLUX.items()))
    written = asked(capsys, "--scenario", str(file))
    assert typed == written == json.loads(json.dumps(answer.to_json()))
    assert typed["latency_s"] == pytest.approx(answer.generated.latency_s)
    assert typed["intervals"]["latency_s"]["low_80"] < typed["latency_s"] < typed["intervals"]["latency_s"]["high_80"]
    assert [stage["name"] for stage in typed["stages"]] == ["prompt", "denoise", "decode"]


def test_money_and_energy_are_of_one_item():
    answer = orrery.estimate(**FLUX, batch=4, usd_per_hour=3.6)
    g = answer.generated
    assert answer.usd_per_item == pytest.approx(4 * 0.001 * g.latency_s / 4)
    assert answer.energy_j_per_item == pytest.approx(g.power_w * g.latency_s / 4)
    video = orrery.estimate(model="wan2.1-t2v-1.3b", device="h100-sxm", usd_per_hour=3.6)
    assert video.usd_per_video_s == pytest.approx(0.001 * video.generated.latency_s / (81 / 16))


def test_intervals_are_wider_where_nothing_was_measured():
    def width(model, device):
        found = orrery.estimate(model=model, device=device).intervals()["latency_s"]
        return found.high_80 / found.low_80

    known = width("flux.1-dev", "h100-sxm")
    assert width("flux.1-dev", "a100-sxm-80gb") == pytest.approx(known**2)
    assert width("sana_1600m", "h100-sxm") == pytest.approx(known**2)


def test_a_pipeline_that_does_not_fit_says_what_it_needs():
    answer = orrery.estimate(model="flux.1-dev", device="rtx-4090")
    assert isinstance(answer, InfeasibleAnswer)
    assert answer.infeasible.need > 33e9 > answer.infeasible.have


def test_a_file_in_the_catalogues_way_is_read(tmp_path):
    from orrery.catalog.diffusion import FOLDER

    file = tmp_path / "mine.toml"
    file.write_bytes((FOLDER / "black-forest-labs--FLUX.1-dev.toml").read_bytes())
    mine = orrery.estimate(**{**FLUX, "model": str(file)})
    assert mine.generated.latency_s == orrery.estimate(**FLUX).generated.latency_s


REFUSED = [
    ({"model": "stable-diffusion-3.5-large", "ulysses_degree": 4}, "38 heads"),
    ({"height": 1000}, "write 992"),
    ({"num_frames": 5}, "makes pictures"),
    ({"devices": 8}, "ulysses_degree x ring_degree is 4"),
    ({"tp": 2}, "tp: of text"),
    ({"guidance": True}, "in one pass"),
    ({"device": None}, "device: missing"),
    ({"model": "llama-3.1-8b"}, "ulysses_degree: of pictures"),
    ({"model": "nowhere.toml"}, "nowhere.toml"),
]


@over(REFUSED, named=lambda changes, words: words)
def test_what_cannot_be_is_refused_in_words(changes, words):
    settings = {k: v for k, v in {**FLUX, **changes}.items() if v is not None}
    if settings["model"] == "llama-3.1-8b":
        settings.pop("num_inference_steps")
    with pytest.raises(OrreryError, match=words):
        orrery.estimate(**settings)


def test_other_commands_say_who_answers():
    with pytest.raises(OrreryError, match="orrery estimate answers for it alone"):
        orrery.plan(model="flux.1-dev", device="h100-sxm", input_tokens=8, output_tokens=8)


def test_the_terminal_shows_stages(capsys):
    assert run(["estimate", "--model", "wan2.1-t2v-14b", "--device", "b200", "--ulysses-degree", "8"]) == 0
    shown = capsys.readouterr().out
    for words in ("denoise", "bound by attention", "a second of video", "left"):
        assert words in shown
