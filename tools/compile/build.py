"""Translates and compiles the engine rooms where they stand: ``python tools/compile/build.py [ROOM ...]``.

The package's installation does the same (``hatch_build.py``). Needs Cython and a C compiler. With
``ORRERY_CHECK_BOUNDS=1`` every index is checked, which is for tests: an index outside its axis raises IndexError.
"""

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from compile.translate import Room, Sources

FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fPIC",
         "-w", "-DNDEBUG")  # fmt: skip
"""Every operation rounds as Python's does: nothing is contracted or reordered."""
BASELINE = {"x86_64": ("-march=x86-64-v2",)}
"""What a machine must have, as numpy's own wheels do: rounding to whole numbers is one instruction from there on."""


def room_names(root: Path) -> list[str]:
    """The rooms that have an engine room: folders of the package with a ``_kernel.py`` in them."""
    house = root / "src" / "orrery"
    return sorted({path.relative_to(house).parts[0] for path in house.rglob("_kernel.py")})


def translated(root: Path, room: str) -> str:
    """The Cython source of a room."""
    house = root / "src" / "orrery"
    sources = Sources(root / "src")

    def names(folder: Path, pattern: str) -> list[str]:
        found = (path.relative_to(root / "src").with_suffix("") for path in folder.rglob(pattern))
        return sorted(".".join(path.parts) for path in found)

    checks_bounds = bool(os.environ.get("ORRERY_CHECK_BOUNDS"))
    made = Room(
        sources, names(house / room, "_kernel.py"), names(house, "techniques/*.py"), checks_bounds=checks_bounds
    )
    digests = {
        str(source.path.relative_to(house)): sha256(source.path.read_bytes()).hexdigest()
        for source in sources.by_name.values()
    }
    return made.text(digests)


def compile_room(root: Path, room: str) -> Path:
    """Writes the extension ``orrery.<room>._compiled``, unless it stands there from the same sources, and answers with
    its path; CalledProcessError where C fails."""
    work = root / "build" / "rooms"
    work.mkdir(parents=True, exist_ok=True)
    cython, c = work / f"{room}.pyx", work / f"{room}.c"
    text = translated(root, room)
    made = root / "src" / "orrery" / room / f"_compiled{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = (*FLAGS, *BASELINE.get(platform.machine(), ()), *shlex.split(os.environ.get("CFLAGS", "")))
    stamp, seal = work / f"{made.name}.{room}", sha256(repr((text, compiler, flags)).encode()).hexdigest()
    if made.exists() and stamp.exists() and stamp.read_text() == seal:
        return made
    cython.write_text(text)
    module = f"orrery.{room}._compiled"
    subprocess.run([sys.executable, "-m", "cython", "--module-name", module, str(cython), "-o", str(c)], check=True)
    partial = made.with_name(f".{made.name}.partial")
    link = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
    include = f"-I{sysconfig.get_paths()['include']}"
    subprocess.run([*compiler, *flags, include, str(c), *link, "-o", str(partial), "-lm"], check=True)
    os.replace(partial, made)
    stamp.write_text(seal)
    return made


def build(root: Path, rooms: list[str]) -> list[Path]:
    """Every room, two at a time; their extensions."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda room: compile_room(root, room), rooms))


if __name__ == "__main__":
    here = Path(__file__).parents[2]
    for path in build(here, sys.argv[1:] or room_names(here)):
        print(path.relative_to(here))
