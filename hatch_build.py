"""Builds the engine rooms as C extensions while the package is built or installed for editing."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))


class KernelsHook(BuildHookInterface[Any]):
    """Compiles the rooms; without a C compiler the package is plain Python, and says so when it runs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        from compile.build import build

        made = build(Path(self.root))
        if made:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
