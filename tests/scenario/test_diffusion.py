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


def test_patches_are_a_lever_of_every_door(capsys, tmp_path):
    """Off equals absent; a device's share of what is left bounds the gain, and doing less is shown apart."""
    plain = {"model": "stable-diffusion-xl-base-1.0", "device": "a100-sxm-80gb", "height": 2048, "width": 2048}
    on = plain | {"patch_parallel": 4, "patch_context": "neighbour", "cuda_graph": True}
    typed = asked(
        capsys,
        *(w for k, v in on.items() if v is not True for w in (f"--{k.replace('_', '-')}", str(v))),
        "--cuda-graph",
    )
    file = tmp_path / "patches.toml"
    file.write_text("".join(f"{k} = {str(v).lower() if v is True else repr(v)}\n" for k, v in on.items()))
    assert typed == asked(capsys, "--scenario", str(file)) == json.loads(json.dumps(orrery.estimate(**on).to_json()))
    found = typed["patches"]
    assert 1 < found["denoise_speedup"] < found["most_denoise_speedup"] == 4 / (1 - found["attention_left_out_frac"])
    whole = orrery.estimate(**on | {"patch_context": "whole"}).to_json()["patches"]
    assert (whole["attention_left_out_frac"], whole["most_denoise_speedup"]) == (0, 4)
    assert whole["received_bytes_per_pass"] > found["received_bytes_per_pass"]
    one = orrery.estimate(**plain)
    assert orrery.estimate(**plain, patch_parallel=1).generated == one.generated
    assert one.to_json()["patches"] is None


def test_the_terminal_says_what_patches_gain(capsys):
    words = ["--model", "flux.1-dev", "--device", "h100-sxm", "--height", "2048", "--width", "2048"]
    assert run(["estimate", *words, "--patch-parallel", "4", "--patch-context", "neighbour"]) == 0
    shown = capsys.readouterr().out
    for said in ("(4 patches)", "Against one device", "attention to far patches", "denoise, waiting"):
        assert said in shown


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
    ({"patch_parallel": 4}, "either patches or a sequence degree"),
    ({"patch_context": "whole"}, "there is one"),
    ({"patch_parallel": 4, "ulysses_degree": None, "patch_context": "far"}, "neighbour, whole"),
    ({"patch_parallel": 4, "ulysses_degree": None, "patch_read_frac": 0.5}, "reads all patches"),
    ({"patch_parallel": 65, "ulysses_degree": None}, "at most 64"),
    ({"patch_parallel": 4, "ulysses_degree": None, "devices": 2}, "patch_parallel is 4"),
    ({"patch_parallel": 4, "ulysses_degree": None, "model": "sana_1600m"}, "linear attention"),
    ({"model": "stable-diffusion-xl-base-1.0", "ulysses_degree": None, "height": 1040}, "write 1024"),
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
