"""All that one extension module holds: functions with all that they call, tables of tables, rules and their types."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType

from compile.kinds import ALTERNATIVES, SCALARS, Refused, base_and_axes, is_array, with_axes
from compile.sources import Source, Sources, stated_in


@dataclass
class Function:
    """A function to translate: where it is from, and its types as C has them."""

    source: Source
    node: ast.FunctionDef
    c_name: str
    params: list[tuple[str, str]]  # name, annotation
    returns: str
    written: set[str] = field(default_factory=set)  # array arguments whose elements it sets, itself or by what it calls
    may_raise: bool = False

    def where(self, node: ast.AST) -> str:
        """The place of a node, for errors."""
        return f"{self.source.path}:{getattr(node, 'lineno', self.node.lineno)}"


class Room:
    """All that one extension module holds."""

    def __init__(self, sources: Sources, names: list[str], rules: list[str], *, checks_bounds: bool = False) -> None:
        self.sources = sources
        self.checks_bounds = checks_bounds
        self.names = names
        self.functions: dict[tuple[str, str], Function] = {}
        self.classes: dict[tuple[str, str], tuple[Source, ast.ClassDef]] = {}
        self.rule_types: dict[tuple[str, str], tuple[Source, ast.expr]] = {}
        self.tables: dict[str, tuple[object, ...]] = {}
        self.maths: set[str] = set()
        self.arrays: set[str] = set()
        self.exports: list[tuple[str, str, list[Function]]] = []  # module, name, the function for each alternative
        self.rules: list[tuple[str, Function, str]] = []  # module, function, rule type
        for name in names:
            source = sources.read(name)
            for node in source.functions.values():
                if any(ast.unparse(d) == "compiled" for d in node.decorator_list):
                    self.exports.append((name, node.name, self._alternatives(source, node)))
        self._find_rules(rules)
        self._find_written()
        self._find_raising()

    def _find_rules(self, techniques: list[str]) -> None:
        """The rules of the house's techniques at the seams that this room's loops call (``SEAMS``)."""
        seams: dict[str, tuple[Source, str]] = {}
        for source in map(self.sources.read, self.names):
            for key, value in stated_in(source, "SEAMS").items():
                if isinstance(value, ast.Constant):
                    seams[key] = (source, str(value.value))
        for source in map(self.sources.parsed, techniques if seams else []):
            stated = stated_in(source, "TECHNIQUE")
            extension_point, rule = stated.get("extension_point"), stated.get("rule")
            if (
                isinstance(extension_point, ast.Constant)
                and extension_point.value in seams
                and isinstance(rule, ast.Name)
            ):
                kind = self.rule_type(*seams[str(extension_point.value)])
                self.rules.append((source.name, self.need(self.sources.read(source.name), rule.id), kind))

    def _alternatives(self, source: Source, node: ast.FunctionDef) -> list[Function]:
        """The function once, or once for all the types that its arguments may have."""
        named = {base_and_axes(ast.unparse(a.annotation))[0] for a in node.args.args if a.annotation is not None}
        free = sorted(named & ALTERNATIVES.keys())
        choices = product(*(ALTERNATIVES[alias] for alias in free))
        return [self.need(source, node.name, dict(zip(free, chosen, strict=True))) for chosen in choices]

    def need(self, source: Source, name: str, chosen: Mapping[str, str] = MappingProxyType({})) -> Function:
        """The function of that name, noted for translation with everything that it calls."""
        key = (source.name, "_".join([name, *chosen.values()]))
        if key in self.functions:
            return self.functions[key]
        node = source.functions[name]
        arguments = node.args.posonlyargs + node.args.args
        if node.args.kwonlyargs or node.args.vararg or node.args.kwarg or node.args.defaults:
            raise Refused(f"{source.path}:{node.lineno}: {name} takes more than plain arguments.")
        params = []
        for argument in arguments:
            if argument.annotation is None:
                raise Refused(f"{source.path}:{node.lineno}: argument {argument.arg} of {name} has no type.")
            text = ast.unparse(argument.annotation)
            base, axes = base_and_axes(text)
            kind = with_axes(chosen[base], axes) if base in chosen else self.type_name(source, argument.annotation)
            params.append((argument.arg, kind))
        returns = ast.unparse(node.returns) if node.returns is not None else "None"
        parts = [p for p in source.name.split(".")[1:] if p != "_kernel"]
        function = Function(source, node, "_".join([*parts, name.lstrip("_"), *chosen.values()]), params, returns)
        if any(f.c_name == function.c_name for f in self.functions.values()):
            function.c_name += "_inner"
        self.functions[key] = function
        local = {p for p, _ in params} | {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id in local:
                continue
            found = self.sources.resolve(source, call.func)
            if found and found[1] in found[0].functions:
                self.need(found[0], found[1])
        return function

    def type_name(self, source: Source, node: ast.expr) -> str:
        """An annotation as this module writes it; classes and rules are noted."""
        text = ast.unparse(node)
        if text == "Sequence[float]":
            return "Floats"
        if text in SCALARS or is_array(text):
            return text
        found = self.sources.resolve(source, node)
        if found is None:
            raise Refused(f"{source.path}:{node.lineno}: the type {text} is unknown.")
        at, name = found
        if name in at.rules:
            return self.rule_type(at, name)
        if name in at.classes:
            if (at.name, name) not in self.classes:
                for line in at.classes[name].body:
                    if isinstance(line, ast.AnnAssign):
                        self.type_name(at, line.annotation)
                self.classes[at.name, name] = (at, at.classes[name])
            return name
        raise Refused(f"{source.path}:{node.lineno}: {text} is no type.")

    def rule_type(self, at: Source, name: str) -> str:
        self.rule_types[at.name, name] = (at, at.rules[name])
        return name

    def c_type(self, annotation: str) -> str:
        """How Cython writes an annotation."""
        if annotation in SCALARS:
            return SCALARS[annotation]
        if is_array(annotation):
            base, axes = base_and_axes(annotation)
            self.arrays |= {with_axes(base, k) for k in range(1, axes + 1)}
        if annotation.startswith("tuple["):
            return "(" + ", ".join(SCALARS[part.strip()] for part in annotation[6:-1].split(",")) + ")"
        return annotation

    def _find_written(self) -> None:
        """Which array arguments are written to, until nothing new is found."""
        for function in self.functions.values():
            for node in ast.walk(function.node):
                targets = (
                    node.targets
                    if isinstance(node, ast.Assign)
                    else [node.target]
                    if isinstance(node, ast.AugAssign)
                    else []
                )
                for target in targets:
                    for one in ast.walk(target):
                        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name):
                            function.written.add(one.value.id)
        while True:
            before = sum(len(f.written) for f in self.functions.values())
            for function in self.functions.values():
                self._pass_on(function)
            if before == sum(len(f.written) for f in self.functions.values()):
                return

    def _pass_on(self, function: Function) -> None:
        """What is handed to a function that writes to it, or is the whole of a slice that is written to, is written."""
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call):
                callee = self.callee(function, node)
                for (name, _), given in zip(callee.params if callee else [], node.args, strict=False):
                    if callee and name in callee.written:
                        base = given.value if isinstance(given, ast.Subscript) else given
                        if isinstance(base, ast.Name):
                            function.written.add(base.id)
            elif isinstance(node, ast.Assign):
                pairs = [(node.targets[0], node.value)]
                if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
                for target, value in pairs:
                    is_part = isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name)
                    if is_part and isinstance(target, ast.Name) and target.id in function.written:
                        function.written.add(value.value.id)

    def _find_raising(self) -> None:
        """Which may meet an error: they make arrays, divide whole numbers, call rules, or call one that does."""
        rules = {name for _, name in self.rule_types}
        for function in self.functions.values():
            kinds = dict(function.params)
            for node in ast.walk(function.node):
                if isinstance(node, ast.BinOp | ast.AugAssign):
                    function.may_raise |= isinstance(node.op, ast.FloorDiv | ast.Mod)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    function.may_raise |= kinds.get(node.func.id) in rules
                elif isinstance(node, ast.Call):
                    function.may_raise |= ast.unparse(node.func) in ("np.empty", "np.zeros")
            function.may_raise |= is_array(function.returns) or self.checks_bounds
        while True:
            before = sum(f.may_raise for f in self.functions.values())
            for function in self.functions.values():
                called = (self.callee(function, n) for n in ast.walk(function.node) if isinstance(n, ast.Call))
                function.may_raise |= any(f.may_raise for f in called if f is not None)
            if before == sum(f.may_raise for f in self.functions.values()):
                return

    def callee(self, function: Function, call: ast.Call) -> Function | None:
        if isinstance(call.func, ast.Name) and call.func.id in dict(function.params):
            return None
        found = self.sources.resolve(function.source, call.func)
        return self.functions.get((found[0].name, found[1])) if found else None

    def fields(self, name: str) -> list[tuple[str, str]]:
        """The fields of a class, with their types."""
        at, node = next(found for (_, c), found in self.classes.items() if c == name)
        return [
            (line.target.id, self.type_name(at, line.annotation))
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]

    def rule_signature(self, at: Source, name: str) -> tuple[list[str], str]:
        arguments = at.rules[name].slice.elts[0].elts  # pyright: ignore
        result = at.rules[name].slice.elts[1]  # pyright: ignore
        return [self.type_name(at, a) for a in arguments], ast.unparse(result)

    def rule_result(self, name: str) -> str:
        """What a rule of this type answers with."""
        return self.rule_signature(next(at for (_, n), (at, _) in self.rule_types.items() if n == name), name)[1]
