#!/bin/sh
# Install load generators, frameworks of agents and the Kubernetes client, each into an environment of its own, and run
# them unchanged against the emulator.
# Usage: tools/checks/clients.sh [folder]; what the folder holds already is used as it is (default: a new one).
# guidellm brings torch: TORCH_INDEX=https://download.pytorch.org/whl/cpu takes the one without CUDA.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
to=$(cd "$folder" && pwd)

for client in aiperf guidellm openai-agents pydantic-ai kubernetes; do
    [ -e "$to/$client/installed" ] && continue
    "$root/.venv/bin/python" -m venv "$to/$client"
    "$to/$client/bin/pip" install --quiet ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$client"
    touch "$to/$client/installed"
done

cd "$root"
ORRERY_AIPERF="$to/aiperf/bin/aiperf" ORRERY_GUIDELLM="$to/guidellm/bin/guidellm" \
    ORRERY_OPENAI_AGENTS="$to/openai-agents/bin/python" ORRERY_PYDANTIC_AI="$to/pydantic-ai/bin/python" \
    ORRERY_KUBERNETES="$to/kubernetes/bin/python" \
    .venv/bin/python -m pytest -n 0 -s -m slow \
    tests/emulator/test_real_clients.py tests/emulator/test_foreign_clients.py tests/planner/test_deploy.py
