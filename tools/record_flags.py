"""Record which flags a version of a serving engine accepts, read from its wheel or source folder, into a fact file.

    python tools/record_flags.py vllm 0.33.0 vllm-0.33.0-….whl

Nothing of the engine is run: its argument files are parsed. A flag is a string constant that starts with ``--`` in a
call (``add_argument("--port")``, ``click.option("--tp_size")``), or, where flags are made from annotated fields
(SGLang since 0.5.15), a field's name with dashes and its aliases. Tests hold every launch command to these lists.
"""

import argparse
import ast
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tomli_w

from orrery.base.files import write_atomically

OUT = Path(__file__).parents[1] / "src" / "orrery" / "catalog" / "facts" / "launch"

FILES = {
    "vllm": (
        r"^vllm/engine/arg_utils\.py$",
        r"^vllm/entrypoints/(openai|common)/cli_args\.py$",
        r"^vllm/entrypoints/cli/serve\.py$",
    ),
    "sglang": (r"^sglang/srt/server_args\.py$", r"^sglang/srt/arg_groups/fields/\w+\.py$"),
    "tensorrt-llm": (r"^tensorrt_llm/commands/serve\.py$",),
}
"""Where each engine declares its flags, as paths in the wheel."""

HOME = {
    "vllm": "https://pypi.org/project/vllm",
    "sglang": "https://pypi.org/project/sglang",
    "tensorrt-llm": "https://pypi.org/project/tensorrt-llm",
}

FLAG = re.compile(r"^--[a-z][a-z0-9_-]+$")


def sources(engine: str, where: Path) -> Iterator[tuple[str, str]]:
    """(path, text) of the files that declare flags."""
    requested = [re.compile(p) for p in FILES[engine]]
    if where.is_dir():
        for path in sorted(where.rglob("*.py")):
            if any(w.search(path.relative_to(where).as_posix()) for w in requested):
                yield path.relative_to(where).as_posix(), path.read_text(encoding="utf-8")
        return
    with zipfile.ZipFile(where) as wheel:
        for name in sorted(wheel.namelist()):
            if any(w.search(name) for w in requested):
                yield name, wheel.read(name).decode()


def literal_flags(tree: ast.AST) -> Iterator[str]:
    """Flags written out in calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if (
                    isinstance(argument, ast.Constant)
                    and isinstance(argument.value, str)
                    and FLAG.match(argument.value)
                ):
                    yield argument.value


def field_flags(tree: ast.AST, *, every: bool) -> Iterator[str]:
    """Flags made from annotated fields: of ``A[type, help]`` annotations, or with ``every`` of all simple fields."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        words = {k.arg: k.value for c in ast.walk(node.annotation) if isinstance(c, ast.Call) for k in c.keywords}
        marked = isinstance(node.annotation, ast.Subscript) and ast.unparse(node.annotation.value) in ("A", "Annotated")
        if not (marked or every) or ("no_cli" in words and ast.unparse(words["no_cli"]) == "True"):
            continue
        written = words.get("cli_name")
        name = (
            str(written.value)
            if isinstance(written, ast.Constant) and written.value
            else node.target.id.replace("_", "-")
        )
        yield "--" + name.removeprefix("--")
        for alias in ast.walk(words["aliases"]) if "aliases" in words else ():
            if isinstance(alias, ast.Constant) and isinstance(alias.value, str) and FLAG.match(alias.value):
                yield alias.value


def flags_of(engine: str, where: Path) -> tuple[list[str], list[str]]:
    """All flags, sorted, and the files they were read from."""
    found: set[str] = set()
    files: list[str] = []
    for path, text in sources(engine, where):
        tree = ast.parse(text)
        files.append(path)
        found.update(literal_flags(tree))
        if "arg_groups/fields" in path or path.endswith("cli_args.py"):
            found.update(field_flags(tree, every=path.endswith("cli_args.py")))
    return sorted(f for f in found if FLAG.match(f)), files


def main() -> None:
    """Write ``facts/launch/<engine>-<version>.toml``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(FILES))
    parser.add_argument("version")
    parser.add_argument("where", type=Path, help="a wheel, or a folder that holds the package")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    flags, files = flags_of(given.engine, given.where)
    if not flags:
        parser.error(f"{given.where}: no flags found; expected files like {', '.join(FILES[given.engine])}")
    fact = {
        "engine": given.engine,
        "version": given.version,
        "source": {
            "title": f"{given.engine} {given.version}, wheel: {', '.join(files[:4])}",
            "url": HOME[given.engine],
        },
        "flags": flags,
    }
    target = given.out / f"{given.engine}-{given.version}.toml"
    write_atomically(target, "# made by: python tools/record_flags.py\n" + tomli_w.dumps(fact))
    print(f"{target.name}: {len(flags)} flags from {len(files)} files")


if __name__ == "__main__":
    main()
