"""Shell around a framework's start: by hand on each node, or as a Slurm batch script that queues itself again."""

import shlex

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.fit import devices_of_node, num_nodes
from orrery.planner.launch.training.script import Script

PORT = 29500
"""torchrun's own default."""

NOT_ASKED = ("SLURM_NODEID", "MASTER_ADDR")
"""Variables that Slurm or the batch script itself sets."""


def by_hand(job: TrainingJob, layout: TrainingLayout, script: Script) -> str:
    """Commands to paste into a shell, the same on each node."""
    many = num_nodes(job, layout) > 1
    needs = list(script.needs)
    if many and script.launcher == "torchrun":
        needs += [("MASTER_ADDR", "name or address of the first node"), ("JOB_ID", "any word, the same on each node")]
    return "\n".join((*_checks(needs), *_exports(script), start(job, layout, script)))


def batch(job: TrainingJob, layout: TrainingLayout, script: Script) -> str:
    """``sbatch`` script: one launcher a node, first node as meeting point, queued again when training fails."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in job.model.name.split("/")[-1])
    head = (
        "#!/bin/bash",
        f"#SBATCH --job-name={name or 'train'}",
        f"#SBATCH --nodes={num_nodes(job, layout)}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={devices_of_node(job, layout)}",
        "#SBATCH --exclusive",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "#SBATCH --output=%x-%j.log",
        "set -euo pipefail",
        *_checks([n for n in script.needs if n[0] not in NOT_ASKED]),
        *_exports(script),
        'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f'export MASTER_ADDR MASTER_PORT="${{MASTER_PORT:-{PORT}}}" JOB_ID="$SLURM_JOB_ID"',
    )
    tail = (
        "status=0",
        f"srun --kill-on-bad-exit=1 {_on_each_node(job, layout, script)} || status=$?",
        'if [ "$status" -ne 0 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "${MAX_RESTARTS:-3}" ]; then',
        '  scontrol requeue "$SLURM_JOB_ID"',
        "fi",
        'exit "$status"',
    )
    return "\n".join((*head, *_file(script), *tail)) + "\n"


def start(job: TrainingJob, layout: TrainingLayout, script: Script) -> str:
    """The launcher, the program and its arguments, a line each."""
    if script.launcher == "accelerate":
        return " \\\n  ".join(("accelerate launch", *script.arguments, script.program))
    return " \\\n  ".join((f"torchrun {_rendezvous(job, layout)} {script.program}", *script.arguments))


def _rendezvous(job: TrainingJob, layout: TrainingLayout) -> str:
    nodes, devices = num_nodes(job, layout), devices_of_node(job, layout)
    if nodes == 1:
        return f"--standalone --nproc-per-node {devices}"
    return (
        f'--nnodes {nodes} --nproc-per-node {devices} --rdzv-id "$JOB_ID" --rdzv-backend c10d '
        f'--rdzv-endpoint "$MASTER_ADDR:${{MASTER_PORT:-{PORT}}}"'
    )


def _on_each_node(job: TrainingJob, layout: TrainingLayout, script: Script) -> str:
    """accelerate wants the node's number, which only the node itself knows."""
    command = start(job, layout, script)
    return f"bash -c {shlex.quote(command)}" if script.launcher == "accelerate" else command


def _checks(needs: list[tuple[str, str]]) -> list[str]:
    return [f': "${{{name}:?{what}}}"' for name, what in needs]


def _exports(script: Script) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in script.environment]


def _file(script: Script) -> tuple[str, ...]:
    """The configuration file, written where the job starts; that folder is shared by all nodes."""
    if not script.config:
        return ()
    return (f"cat > {script.config_name} <<'EOF'", script.config, "EOF")
