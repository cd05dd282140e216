#!/bin/sh
# Build the wheel, show its size and contents, and try it in fresh environments: every Python of 3.11 to 3.13 that is
# here, no compiler, no torch, less than 400 MB, facts and types inside, an estimate that works from another folder, and
# shell completion that knows the commands.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
builder=${BUILDER:-$root/.venv/bin/python}

"$builder" -m pip wheel --quiet --no-deps --wheel-dir "$work/dist" "$root"
wheel=$(ls "$work"/dist/orrery_ai-*.whl)
echo "built $(basename "$wheel"), $(($(wc -c <"$wheel") / 1024)) kB"
"$builder" - "$wheel" <<'PY'
import sys
import zipfile
from collections import Counter

entries = zipfile.ZipFile(sys.argv[1]).infolist()
names = [entry.filename for entry in entries]
for needed in ("orrery/py.typed", "orrery/catalog/facts/devices/h100-sxm.toml", "orrery/catalog/facts/calibrations/"):
    assert any(n.startswith(needed) for n in names), f"the wheel has no {needed}"
assert not [n for n in names if n.startswith("tests/") or "__pycache__" in n], "the wheel holds more than the package"

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

tried=0
for version in 3.11 3.12 3.13; do
    found=
    for python in "python$version" ${PYTHONS:-}; do
        "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null || continue
        found=$python
        venv="$work/$version"
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
        "$venv/bin/python" -m pip uninstall --quiet --yes pip setuptools 2>/dev/null || true
        size=$(du -sm "$venv" | cut -f1)
        [ ! -d "$venv/lib/python$version/site-packages/torch" ] || { echo "torch came along" >&2; exit 1; }
        [ "$size" -lt "${MOST_MB:-400}" ] || { echo "$size MB is too much" >&2; exit 1; }
        (cd "$work" && "$venv/bin/orrery" estimate --model llama-3.1-8b --device h100-sxm --input-tokens 512 \
            --output-tokens 128 --batch 8 --json >"$version.json")
        "$venv/bin/python" -c "import json; a = json.load(open('$work/$version.json')); assert 0.001 < a['tpot_s'] < 0.1"
        _ORRERY_COMPLETE=bash_complete COMP_WORDS="orrery est" COMP_CWORD=1 "$venv/bin/orrery" | grep -q estimate ||
            { echo "shell completion does not know estimate" >&2; exit 1; }
        echo "Python $version: installed ($size MB) and estimated"
        tried=$((tried + 1))
        break
    done
    [ -n "$found" ] || echo "Python $version: not here, not tried"
done
[ "$tried" -gt 0 ] || { echo "no Python of 3.11 to 3.13 was found" >&2; exit 1; }
