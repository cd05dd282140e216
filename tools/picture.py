"""Draw docs/plan.svg, the picture of the README: what ``orrery plan`` really prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
command = "plan --model llama-3.1-70b --device h100-sxm --max-devices 8 --trace chat --slo ttft:1000 --slo tpot:50"
COLUMNS = 134


def describe() -> str:
    """The command's own words, in colour, from its title to the rejected plans."""
    done = subprocess.run(
        [sys.executable, "-c", "from orrery.cli.main import main; main()", *shlex.split(command)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"},
    )
    before, _, _ = done.stdout.partition("Launch the first plan")
    return before.rstrip()


def draw() -> str:
    """The picture as SVG text; the same words give the same picture."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text(f"$ orrery {command}", style="bold"))
        console.print(Text.from_ansi(describe()))
        picture = console.export_svg(title="orrery plan", unique_id="plan")
    local = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # no fonts from other sites
    return local.replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, Liberation Mono, monospace"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "plan.svg").write_text(draw(), encoding="utf-8")
