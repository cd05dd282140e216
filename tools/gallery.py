"""Write docs/gallery.md and its pictures, docs/images/gallery/*.svg: ten questions, each asked of its command anew."""

import contextlib
import io
import json
import os
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from gallery_questions import QUESTIONS, Plain, Question
from orrery.cli.main import run

DOCS = Path(__file__).resolve().parents[1] / "docs"
IMAGES = "images/gallery"

HEAD = """# Ten questions, each with its answer

Each picture is drawn from what the command below it prints with `--json`, on this version's constants; nothing is
measured here. `python tools/gallery.py` (`make docs`) asks all of them again and writes this page:
do so whenever constants move.
"""


def ask(question: Question, folder: Path) -> Plain:
    """The command's own answer, asked in a folder that has the data of the docs."""
    if not (folder / "data").exists():
        (folder / "data").symlink_to(DOCS / "data")
    with contextlib.chdir(folder):
        for command in (question.before, question.command):
            said = io.StringIO()
            if command:
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                    code = run([*shlex.split(command)[1:], *(["--json"] if command == question.command else [])])
                if code:
                    raise SystemExit(f"{command}: exit {code}")
    return json.loads(said.getvalue())


def section(question: Question, sentence: str) -> str:
    """A question's part of the page."""
    commands = "\n".join(f"$ {command}" for command in (question.before, question.command) if command)
    return f"""
## {question.question}

{sentence}

![{question.question} {sentence}]({IMAGES}/{question.name}.svg)

```sh
{commands}
```

More: [{question.page}]({question.page}).
"""


def main() -> None:
    """Ask, draw and write."""
    (DOCS / IMAGES).mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    with TemporaryDirectory() as folder:
        for question in QUESTIONS:
            plain = ask(question, Path(folder))
            (DOCS / IMAGES / f"{question.name}.svg").write_text(question.draw(plain, question.question) + "\n", "utf-8")
            parts.append(section(question, question.sentence(plain)))
    (DOCS / "gallery.md").write_text("".join(parts), "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    main()
