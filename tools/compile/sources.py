"""The kernels' source files, parsed: what their names stand for."""

import ast
import sys
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path


@dataclass
class Source:
    """A parsed file: what its names stand for."""

    name: str
    path: Path
    tree: ast.Module
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    rules: dict[str, ast.expr] = field(default_factory=dict)  # aliases of Callable types
    constants: dict[str, object] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # name here -> (module, name there)
    modules: dict[str, str] = field(default_factory=dict)  # alias -> module


class Sources:
    """Every file that a room's kernels are in, read when it is first named."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_name: dict[str, Source] = {}

    def read(self, name: str) -> Source:
        """The source of a module, which the extension is then made of."""
        if name not in self.by_name:
            self.by_name[name] = self.parsed(name)
        return self.by_name[name]

    def is_kernel(self, name: str) -> bool:
        """Whether a module may be translated: it lies in a house's engine room, or is a technique's."""
        return name.endswith("._kernel") or ".techniques." in name

    def parsed(self, name: str) -> Source:
        """The source of a module, to look at."""
        path = self.root / (name.replace(".", "/") + ".py")
        source = Source(name, path, ast.parse(path.read_text(), str(path)))
        for node in source.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    here = alias.asname or alias.name
                    if self.is_kernel(node.module):
                        source.imported[here] = (node.module, alias.name)
                    elif alias.name == "_kernel":
                        source.modules[here] = f"{node.module}._kernel"
            elif isinstance(node, ast.FunctionDef):
                source.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                source.classes[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                self._note(source, node)
        return source

    def _note(self, source: Source, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if (
            isinstance(value, ast.Subscript)
            and ast.unparse(value.value) == "Callable"
            and isinstance(targets[0], ast.Name)
        ):
            source.rules[targets[0].id] = value
            return
        known = {**source.constants, "range": range, "len": len, "float": float, "sys": sys, "inf": inf, "nan": nan}
        for name, (module, there) in source.imported.items():
            constants = self.read(module).constants
            if there in constants:
                known[name] = constants[there]
        try:
            got = eval(compile(ast.Expression(value), str(source.path), "eval"), {"__builtins__": {}}, known)
        except Exception:  # not a constant: a type, an array, an object of Python's
            return
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = list(got) if isinstance(target, ast.Tuple) else [got]
            for one, is_value in zip(names, values, strict=True):
                if isinstance(one, ast.Name):
                    source.constants[one.id] = is_value

    def resolve(self, source: Source, node: ast.expr) -> tuple[Source, str] | None:
        """The file and the name there that a name or ``module.name`` stands for; None for a local one."""
        if isinstance(node, ast.Name):
            if node.id in source.imported:
                module, there = source.imported[node.id]
                return self.resolve(self.read(module), ast.Name(there)) or (self.read(module), there)
            if any(node.id in t for t in (source.functions, source.classes, source.constants, source.rules)):
                return source, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in source.modules:
            return self.read(source.modules[node.value.id]), node.attr
        return None


def stated_in(source: Source, name: str) -> dict[str, ast.expr]:
    """What a file's dictionary, or call with keywords, of that name states."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            if isinstance(node.value, ast.Dict):
                return {
                    k.value: v
                    for k, v in zip(node.value.keys, node.value.values, strict=True)
                    if isinstance(k, ast.Constant)
                }
            if isinstance(node.value, ast.Call):
                return {k.arg: k.value for k in node.value.keywords if k.arg}
    return {}
