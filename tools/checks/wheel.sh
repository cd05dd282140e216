#!/bin/sh
# Build a wheel for every Python of 3.11 to 3.13 that is here, show the size and contents of one, and try each in a fresh
# environment without a compiler: no torch, no numba, less than 250 MB, facts and types inside, compiled, an estimate that
# works from another folder, and shell completion that knows the commands. Then once more from source with no compiler:
# plain Python, which says so and gives the same number.
set -eu
unset PYTHONPATH # what is installed is tried, not a checkout

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

contents() {
    "$1" - "$2" <<'PY'
import sys
import zipfile
from collections import Counter

entries = zipfile.ZipFile(sys.argv[1]).infolist()
names = [entry.filename for entry in entries]
for needed in ("orrery/py.typed", "orrery/catalog/facts/devices/h100-sxm.toml", "orrery/catalog/facts/calibrations/",
               "orrery/serving/_compiled.", "orrery/kernels/_compiled.", "orrery_papers/holmes/paper.toml"):
    assert any(n.startswith(needed) for n in names), f"the wheel has no {needed}"
assert not [n for n in names if n.startswith("tests/") or "__pycache__" in n], "the wheel holds more than the package"
assert not [n for n in names if n.startswith("orrery_papers/") and n.endswith(".py")], "predictions came along"
compiled = {n.split(".", 1)[1] for n in names if "/_compiled" in n}
assert len(compiled) == 1, f"the wheel holds extensions for several Pythons: {sorted(compiled)}"

files, sizes, packed = Counter(), Counter(), Counter()
for entry in entries:
    folder = "/".join(entry.filename.split("/")[:2]) if entry.filename.count("/") > 1 else entry.filename.split("/")[0]
    files[folder] += 1
    sizes[folder] += entry.file_size
    packed[folder] += entry.compress_size
print(f"{'folder':<28} {'files':>6} {'kB':>7} {'packed kB':>10}")
for folder, size in sizes.most_common():
    print(f"{folder:<28} {files[folder]:>6,} {size / 1024:>7,.0f} {packed[folder] / 1024:>10,.0f}")
print(f"{'all':<28} {sum(files.values()):>6,} {sum(sizes.values()) / 1024:>7,.0f} {sum(packed.values()) / 1024:>10,.0f}")
PY
}

try() { # environment, what to install, name of the answer
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check "$2"
    "$1/bin/python" -m pip uninstall --quiet --yes pip setuptools 2>/dev/null || true
    for package in torch numba; do
        [ ! -d "$1"/lib/python3*/site-packages/$package ] || { echo "$package came along" >&2; exit 1; }
    done
    size=$(du -sm "$1" | cut -f1)
    [ "$size" -lt "${MOST_MB:-250}" ] || { echo "$size MB is too much" >&2; exit 1; }
    (cd "$work" && PATH=/nowhere "$1/bin/orrery" estimate --model llama-3.1-8b --device h100-sxm --input-tokens 512 \
        --output-tokens 128 --batch 8 --json >"$3.json" 2>"$3.notes")
    "$1/bin/python" -c "import json; a = json.load(open('$work/$3.json')); assert 0.001 < a['tpot_s'] < 0.1"
    _ORRERY_COMPLETE=bash_complete COMP_WORDS="orrery est" COMP_CWORD=1 "$1/bin/orrery" | grep -q estimate ||
        { echo "shell completion does not know estimate" >&2; exit 1; }
}

tried=
for version in 3.11 3.12 3.13; do
    found=
    for python in "python$version" ${PYTHONS:-}; do
        "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null || continue
        found=$python
        "$python" -m venv "$work/$version"
        ORRERY_COMPILE_REQUIRED=1 "$work/$version/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
            --wheel-dir "$work/dist$version" "$root"
        wheel=$(ls "$work/dist$version"/orrery_ai-*.whl)
        [ -n "$tried" ] || contents "$python" "$wheel"
        try "$work/$version" "$wheel" "$version"
        ! grep -q "plain Python" "$work/$version.notes" || { echo "the wheel is not compiled" >&2; exit 1; }
        echo "Python $version: $(basename "$wheel"), $(($(wc -c <"$wheel") / 1024)) kB, installed ($size MB) and estimated"
        tried=$python
        break
    done
    [ -n "$found" ] || echo "Python $version: not here, not tried"
done
[ -n "$tried" ] || { echo "no Python of 3.11 to 3.13 was found" >&2; exit 1; }

"$tried" -m venv "$work/plain"
mkdir "$work/source"
(cd "$root" && git ls-files -z | grep -zv '^tests/' | xargs -0 cp --parents -t "$work/source")
CC=/nowhere/cc "$work/plain/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/bare" \
    "$work/source"
try "$work/plain" "$(ls "$work"/bare/orrery_ai-*.whl)" plain
grep -q "plain Python" "$work/plain.notes" || { echo "plain Python does not say that it is" >&2; exit 1; }
"$tried" - "$work" <<'PY'
import json
import sys
from pathlib import Path

answers = [json.loads(path.read_text())["tpot_s"] for path in sorted(Path(sys.argv[1]).glob("*.json"))]
assert len(set(answers)) == 1, f"TPOT differs between builds: {answers}"
PY
echo "without a compiler: plain Python, the same answer"

# The predictions of papers are a second distribution: without it `reproduce` says what to install, with it it runs.
"$tried" -m venv "$work/papers"
"$work/papers/bin/python" -m pip install --quiet --disable-pip-version-check "$(ls "$work"/bare/orrery_ai-*.whl)"
if (cd "$work" && "$work/papers/bin/orrery" reproduce holmes 2>"$work/missing"); then
    echo "reproduce runs without the predictions" >&2
    exit 1
fi
grep -q "orrery-ai\[papers\]" "$work/missing" || { cat "$work/missing" >&2; exit 1; }
"$work/papers/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/bare" \
    "$work/source/src/orrery_papers"
"$work/papers/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$(ls "$work"/bare/orrery_ai_papers-*.whl)"
(cd "$work" && "$work/papers/bin/orrery" reproduce holmes --json >/dev/null)
echo "the papers' predictions: a wheel of their own, asked for and run"
