"""Compute the landing page's chart ahead: one file a popular model in src/orrery/web/landing/computed.

    tools/landing.py [MODEL ...]        # all popular models in about 2 minutes on one core, or only those named

Run it after a change of constants or of mechanisms. Each file is marked with the version of what it was computed from;
``tests/web/test_landing.py`` holds a sample of them against live answers while that version is still the present one.
"""

import json
import sys
import time

from landing_runs import runs_of
from landing_version import version
from orrery.web.landing.choices import ENGINES, MODELS, TRAFFIC, keys_of
from orrery.web.landing.points import points_of
from orrery.web.landing.shipped import FOLDER, file_of

LENGTHS = next(iter(TRAFFIC.values()))


def computed(model: str) -> str:
    """The text of one model's file: a line for each engine and device, and for each published run."""
    engines = ",\n".join(f" {json.dumps(engine)}: {{\n{_devices(model, engine)}\n }}" for engine in ENGINES)
    runs = ",\n".join(f"  {json.dumps(run, separators=(',', ':'))}" for run in runs_of(model))
    head = f'"model": {json.dumps(model)}, "version": {json.dumps(version())}'
    return f'{{{head}, "engines": {{\n{engines}\n}}, "published": [\n{runs}\n]}}\n'


def _devices(model: str, engine: str) -> str:
    rows = {device: points_of(model, device, engine, LENGTHS) for device in keys_of(engine)}
    return ",\n".join(f"  {json.dumps(d)}: {json.dumps(found, separators=(',', ':'))}" for d, found in rows.items())


def main() -> None:
    """Write the files of the models that are named, or of all."""
    FOLDER.mkdir(exist_ok=True)
    named = sys.argv[1:] or [m.key for m in MODELS]
    started_s = time.perf_counter()
    for model in named:
        began_s = time.perf_counter()
        file_of(model).write_text(computed(model), encoding="utf-8")
        print(f"{model}: {file_of(model).stat().st_size:,} bytes, {time.perf_counter() - began_s:.1f} s", flush=True)
    total = sum(p.stat().st_size for p in FOLDER.glob("*.json"))
    print(f"{len(named)} models in {time.perf_counter() - started_s:.0f} s; {total:,} bytes in all")


if __name__ == "__main__":
    main()
