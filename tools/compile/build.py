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

from compile.module import Module
from compile.room import Room
from compile.sources import Sources

FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fPIC", "-w", "-DNDEBUG")
"""Every operation rounds as Python's does: nothing is contracted or reordered."""
ENDING: str = sysconfig.get_config_var("EXT_SUFFIX")  # asked once: the first asking is not safe among threads
INCLUDE = sysconfig.get_paths()["include"]
BASELINE = {"x86_64": ("-march=x86-64-v2",)}
"""What a machine must have, as numpy's own wheels do: rounding to whole numbers is one instruction from there on."""
WIDE = {"x86_64": ("-mavx2",)}
"""What most machines have besides: loops over elements are compiled for it too, and chosen when they are imported."""
SPEED = ("-O3",)
LOOPS = ("-O3", "-funroll-loops", "--param=max-unswitch-insns=1000", "--param=max-unswitch-level=20")
"""For loops over elements: several at once, and choices that stay the same made before the loop."""
LOOPING = ("numerics",)
"""Rooms whose work is loops over elements."""


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
    return Module(made).text(digests)


def variants(room: str) -> dict[str, tuple[str, ...]]:
    """The extensions of a room on this machine's family, with their flags."""
    baseline, wide = (flags.get(platform.machine(), ()) for flags in (BASELINE, WIDE))
    if room in LOOPING and wide:
        return {"_compiled": ("-O1", *baseline), "_compiled_wide": (*LOOPS, *baseline, *wide)}
    return {"_compiled": (*(LOOPS if room in LOOPING else SPEED), *baseline)}


def compile_room(root: Path, room: str) -> list[Path]:
    """Writes the extensions of a room, unless they stand there from the same sources, and answers with their paths;
    CalledProcessError where C fails."""
    work, folder = root / "build" / "rooms", root / "src" / "orrery" / room
    work.mkdir(parents=True, exist_ok=True)
    made = {folder / f"{name}{ENDING}": flags for name, flags in variants(room).items()}
    text = translated(root, room)
    stamp = work / f"{room}{ENDING}.stamp"
    seal = sha256(repr((text, made, compiler(), FLAGS)).encode()).hexdigest()
    if all(path.exists() for path in made) and stamp.exists() and stamp.read_text() == seal:
        return list(made)
    cython, c = work / f"{room}.pyx", work / f"{room}.c"
    cython.write_text(text)
    module = f"orrery.{room}._compiled"
    subprocess.run([sys.executable, "-m", "cython", "--module-name", module, str(cython), "-o", str(c)], check=True)
    for path, flags in made.items():
        link(c, path, flags)
    stamp.write_text(seal)
    return list(made)


def compiler() -> list[str]:
    """The C compiler and the flags that the user wants besides."""
    return [*shlex.split(os.environ.get("CC") or "cc"), *shlex.split(os.environ.get("CFLAGS", ""))]


def link(c: Path, made: Path, flags: tuple[str, ...]) -> None:
    """The extension ``made``, from C; one that was there is replaced when the new one is whole."""
    partial = made.with_name(f".{made.name}.partial")
    shared = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
    include, entry = f"-I{INCLUDE}", f"-DPyInit__compiled=PyInit_{made.name.split('.')[0]}"
    text = (*FLAGS, *flags, include, entry, str(c), *shared, "-o", str(partial), "-lm")
    subprocess.run([*compiler(), *text], check=True)
    os.replace(partial, made)


def build(root: Path, rooms: list[str]) -> list[Path]:
    """Every room, two at a time, the largest first; their extensions."""

    def size(room: str) -> int:
        return sum(path.stat().st_size for path in (root / "src" / "orrery" / room).rglob("_kernel.py"))

    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda room: compile_room(root, room), sorted(rooms, key=size, reverse=True))
        return [path for paths in made for path in paths]


if __name__ == "__main__":
    here = Path(__file__).parents[2]
    for path in build(here, sys.argv[1:] or room_names(here)):
        print(path.relative_to(here))
