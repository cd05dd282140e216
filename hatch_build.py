"""Compiles the engine rooms while the package is built, or installed for editing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))

REQUIRED = "ORRERY_COMPILE_REQUIRED"
"""The environment's variable under which a build without a C compiler fails."""


def _manual(docs: Path) -> dict[str, str]:
    """The documentation's pages and pictures, and where `orrery web` looks for them in an installed package."""
    files = (path for ending in ("md", "svg", "png") for path in docs.rglob(f"*.{ending}"))
    return {str(path): f"orrery/web/manual/docs/{path.relative_to(docs)}" for path in files}


class KernelsHook(BuildHookInterface[Any]):
    """Compiles the rooms. Where no C compiler works the package is plain Python, which it says when it runs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        from compile.build import build, room_names

        root = Path(self.root)
        if version != "editable":  # a checkout shows its own pages
            build_data["force_include"] |= _manual(root / "docs")
        try:
            made = build(root, room_names(root))
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get(REQUIRED):
                raise
            self.app.display_warning(
                f"The engine rooms are not compiled, so orrery runs some 100 times slower: {error}"
            )
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += [str(path.relative_to(root)) for path in made]
