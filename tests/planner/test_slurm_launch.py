"""The batch script: every word handed over whole, failed runs queued again, options that are those of Slurm."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from training_launches import FRAMEWORK, LAYOUTS, case

from orrery.planner.launch.training import WRITERS, launches, scripts, slurm
from orrery.planner.launch.training.fit import num_nodes
from orrery.planner.launch.training.manifest import training_manifests


def stubs(folder: Path, status: int) -> dict[str, str]:
    """An environment where srun runs its words here, launchers write theirs down, and every variable is set."""
    programs = {
        "srun": f'shift\n"$@"\nexit {status}\n',
        "scontrol": 'echo "$@" >> "$NOTES/queued"\necho node-1\n',
        "torchrun": 'printf "%s\\0" "$@" > "$NOTES/words"\n',
        "accelerate": 'printf "%s\\0" "$@" > "$NOTES/words"\n',
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}")
        (folder / name).chmod(0o755)
    slurm_own = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node-[1-2]", "SLURM_NODEID": "1"}
    requested = ("DATA_PATH", "TRAIN_ITERS", "LEARNING_RATE", "CHECKPOINTS", "MEGATRON_PATH", "MEGATRON_BRIDGE_PATH")
    requested += ("TRAIN_SCRIPT",)
    return slurm_own | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "NOTES": str(folder),
        **{n: f"a b/{n}" for n in requested},
    }


def run_batch(folder: Path, text: str, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    script = folder / "job.sh"
    script.write_text(text)
    return subprocess.run(
        ["bash", script], env=stubs(folder, status) | more, cwd=folder, text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize("framework", WRITERS)
def test_the_batch_script_hands_every_word_over_whole(framework: str, tmp_path: Path) -> None:
    name = "hybrid" if framework == "fsdp" else "gradients sharded"
    plain, layout = case(name)
    script = scripts(plain, layout)[framework]
    done = run_batch(tmp_path, slurm.batch(plain, layout, script))
    assert (done.returncode, done.stderr) == (0, "")
    got = (tmp_path / "words").read_text().split("\0")[:-1]
    if framework == "fsdp":
        assert got[0] == "launch"
        assert got[got.index("--machine_rank") + 1] == "1"
        assert got[-1] == "a b/TRAIN_SCRIPT"
    else:
        assert got[:4] == ["--nnodes", str(num_nodes(plain, layout)), "--nproc-per-node", "8"]
        assert "node-1:29500" in got
    if script.config:
        assert (tmp_path / script.config_name).read_text() == script.config + "\n"


def test_odd_names_stay_one_word(tmp_path: Path) -> None:
    plain, layout = case("gradients sharded")
    odd = 'me/it\'s; rm -rf "$HOME" `x` 100%'
    plain = replace(plain, model=replace(plain.model, name=odd))
    text = launches(plain, layout)["slurm"]
    assert "#SBATCH --job-name=it-s--rm--rf---HOME---x--100-" in text
    assert run_batch(tmp_path, text).returncode == 0
    got = (tmp_path / "words").read_text().split("\0")
    assert got[got.index("--tokenizer-model") + 1] == odd
    assert got[got.index("--data-path") + 1] == "a b/DATA_PATH"


def test_a_failed_run_is_queued_again_but_not_for_ever(tmp_path: Path) -> None:
    text = launches(*case("gradients sharded"))["slurm"]
    notes = tmp_path / "queued"
    assert run_batch(tmp_path, text, status=3).returncode == 3
    assert "requeue 7" in notes.read_text()
    notes.unlink()
    assert run_batch(tmp_path, text, status=3, SLURM_RESTART_COUNT="3").returncode == 3
    assert "requeue" not in notes.read_text()
    assert run_batch(tmp_path, text, status=3, SLURM_RESTART_COUNT="3", MAX_RESTARTS="5").returncode == 3
    assert "requeue 7" in notes.read_text()
    notes.unlink()
    assert run_batch(tmp_path, text).returncode == 0
    assert "requeue" not in notes.read_text()


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    text = launches(*case("gradients sharded"))["slurm"]
    done = run_batch(tmp_path, text, DATA_PATH="")
    assert done.returncode != 0
    assert "DATA_PATH: tokenized data" in done.stderr
    assert not (tmp_path / "words").exists()


@pytest.mark.parametrize("name", LAYOUTS)
def test_batch_options_are_slurms_and_ask_for_the_devices(name: str) -> None:
    plain, layout = case(name)
    requested = [
        line.removeprefix("#SBATCH ") for line in launches(plain, layout)["slurm"].splitlines() if "#SBATCH" in line
    ]
    flags = {a.partition("=")[0]: a.partition("=")[2] for a in requested}
    assert flags.keys() | {"--kill-on-bad-exit"} <= training_manifests()["slurm"].flags
    assert int(flags["--nodes"]) * int(flags["--gpus-per-node"]) == layout.num_devices
    assert flags["--ntasks-per-node"] == "1"


def test_the_jobs_own_framework_is_queued() -> None:
    plain, layout = case("gradients sharded")
    for framework, word in (("deepspeed", "ds_config.json"), ("torchtitan", "torchtitan.train"), ("fsdp", "fsdp.yaml")):
        own = replace(plain, framework=replace(FRAMEWORK, name=framework))
        assert word in launches(own, layout)["slurm"]
    assert "pretrain_gpt.py" in launches(plain, layout)["slurm"]
