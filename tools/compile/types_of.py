"""The types of a function's local names and expressions."""

import ast
from math import isinf, isnan

from compile.kinds import BITS, NUMPY_SCALARS, READ_AS, SCALARS, Refused, base_and_axes, with_axes
from compile.room import Function, Room


class Types:
    """What is known of a function's names: settled when made, from all that is assigned to them."""

    def __init__(self, room: Room, function: Function) -> None:
        self.room = room
        self.function = function
        self.params = dict(function.params)
        self.types: dict[str, str] = dict(function.params)
        self.made: set[str] = set()  # arrays that this function made: the object stands beside the typed view
        self.rules = {name for _, name in room.rule_types}
        self.fields = {c: dict(room.fields(c)) for _, c in room.classes}
        self._settle_types()

    def _settle_types(self) -> None:
        """The type of every local name, from all that is assigned to it, until nothing changes."""
        nodes = list(ast.walk(self.function.node))
        for node in nodes:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.types[node.target.id] = self.room.type_name(self.function.source, node.annotation)
        fixed = set(self.types)
        for _ in range(20):
            before = dict(self.types)
            for node in nodes:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._bind(target, node.value, fixed)
                elif isinstance(node, ast.AugAssign):
                    self._join(node.target, self._binary(node.op, self.kind(node.target), self.kind(node.value)), fixed)
                elif isinstance(node, ast.For):
                    self._join(node.target, "int", fixed)
            if self.types == before:
                break
        for name, kind in self.types.items():
            self.types[name] = {"weak int": "int", "weak float": "float"}.get(kind, kind)

    def _bind(self, target: ast.expr, value: ast.expr, fixed: set[str]) -> None:
        if not isinstance(target, ast.Tuple):
            self._join(target, self.kind(value), fixed)
        elif isinstance(value, ast.Tuple):
            for one, given in zip(target.elts, value.elts, strict=True):
                self._join(one, self.kind(given), fixed)
        else:
            kind = self.kind(value)
            if kind is None:
                return
            parts = kind[6:-1].split(", ") if kind.startswith("tuple[") else [self._element(kind)] * len(target.elts)
            for one, part in zip(target.elts, parts, strict=True):
                self._join(one, part, fixed)

    def _join(self, target: ast.expr, kind: str | None, fixed: set[str]) -> None:
        if isinstance(target, ast.Name) and kind is not None and target.id not in fixed:
            self.types[target.id] = self._wider(self.types.get(target.id), kind)

    def _wider(self, one: str | None, other: str | None) -> str:
        """The type that holds both; a literal takes the type of what it meets."""
        if one is None or other is None or one == other:
            return one or other or ""
        order = list(SCALARS)
        for literal, least in (("weak int", "byte"), ("weak float", "single")):
            if literal in (one, other):
                rest = other if one == literal else one
                if rest == "weak float" or rest == "weak int":
                    return "weak float"
                if rest not in order:
                    break
                return rest if order.index(rest) >= order.index(least) else literal
        if one in order and other in order:
            if {one, other} == {"single", "int"} or {one, other} == {"single", "word"}:
                return "float"
            return max(one, other, key=order.index)
        raise Refused(f"{self.function.where(self.function.node)}: {one} and {other} meet in one name.")

    def _element(self, kind: str) -> str:
        return READ_AS[base_and_axes(kind)[0]]

    def kind(self, node: ast.expr) -> str | None:
        """The type of an expression; None while it is not known."""
        if isinstance(node, ast.Constant):
            kinds = {bool: "bool", int: "weak int", float: "weak float"}
            return kinds.get(type(node.value))
        if isinstance(node, ast.Name):
            if node.id in self.types:
                return self.types[node.id]
            constant = self.constant(node)
            return self.kind(constant) if isinstance(constant, ast.Constant) else "weak float" if constant else None
        if isinstance(node, ast.Attribute):
            return self._attribute_kind(node)
        if isinstance(node, ast.Subscript):
            return self._subscript_kind(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node.op, self.kind(node.left), self.kind(node.right))
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else self.kind(node.operand)
        if isinstance(node, ast.Compare):
            return "bool"
        if isinstance(node, ast.BoolOp):
            kind = None
            for value in node.values:
                kind = self._wider(kind, self.kind(value))
            return kind
        if isinstance(node, ast.IfExp):
            return self._wider(self.kind(node.body), self.kind(node.orelse)) or None
        if isinstance(node, ast.Call):
            return self._call_kind(node)
        if isinstance(node, ast.Tuple):
            kinds = [self.kind(one) for one in node.elts]
            return None if None in kinds else f"tuple[{', '.join(str(k) for k in kinds)}]"
        raise Refused(f"{self.function.where(node)}: {ast.unparse(node)} has no type in C.")

    def _attribute_kind(self, node: ast.Attribute) -> str | None:
        text = ast.unparse(node)
        if text in ("np.inf", "math.inf", "np.nan", "math.nan"):
            return "weak float"
        if node.attr == "size":
            return "int"
        constant = self.constant(node)
        if constant is not None:
            return self.kind(constant) if isinstance(constant, ast.Constant) else "weak float"
        if node.attr == "shape":
            return "Ints"
        of = self.kind(node.value)
        if of is None:
            return None
        if of in self.fields and node.attr in self.fields[of]:
            return self.fields[of][node.attr]
        raise Refused(f"{self.function.where(node)}: {text} is unknown.")

    def _subscript_kind(self, node: ast.Subscript) -> str | None:
        constant = self.constant(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else None
        if isinstance(constant, ast.Name) and constant.id in self.room.tables:
            return "float"
        of = self.kind(node.value)
        if of is None:
            return None
        base, axes = base_and_axes(of)
        left = axes - sum(not isinstance(one, ast.Slice) for one in indices(node))
        return self._element(of) if left == 0 else with_axes(base, left)

    def _binary(self, op: ast.operator, left: str | None, right: str | None) -> str | None:
        if left is None or right is None:
            return None
        if isinstance(op, ast.Div):
            return (
                "single"
                if {left, right} <= {"single", "weak int", "weak float"} and "single" in (left, right)
                else "float"
            )
        if isinstance(op, ast.Pow):
            return "float"
        if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and left == right == "bool":
            return "bool"
        if isinstance(op, ast.LShift | ast.RShift):
            return "int" if left in ("weak int", "bool") else left
        joined = self._wider(left, right)
        return "int" if joined == "bool" else joined

    def _call_kind(self, node: ast.Call) -> str | None:
        function = node.func
        if isinstance(function, ast.Name):
            if self.params.get(function.id) in self.rules:
                return self.room.rule_result(self.params[function.id])
            if function.id in ("min", "max"):
                kind = None
                for one in node.args:
                    given = self.kind(one)
                    if given is None:
                        return None
                    kind = self._wider(kind, given)
                return kind
            if function.id == "len":
                return "int"
            if function.id in ("int", "float", "bool"):
                return function.id
            if function.id in BITS:
                return BITS[function.id][0]
            if function.id == "abs":
                return self.kind(node.args[0])
        callee = self.room.callee(self.function, node)
        if callee is not None:
            return None if callee.returns == "None" else callee.returns
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.attr in NUMPY_SCALARS:
                return NUMPY_SCALARS[function.attr]
            if function.attr in ("abs", "fabs", "rint", "trunc", "ceil", "floor", "copysign"):
                first = self.kind(node.args[0])
                return first if first == "single" else "float"
            return "float"
        raise Refused(f"{self.function.where(node)}: {ast.unparse(function)} cannot be called.")

    def constant(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in self.types:
            return None
        found = self.room.sources.resolve(self.function.source, node)
        if found and found[1] in found[0].constants:
            value = found[0].constants[found[1]]
            if isinstance(value, int | float):
                return number(value)
            if isinstance(value, tuple) and all(isinstance(v, int | float) for v in value):
                name = f"{found[1]}_{'_'.join(found[0].name.split('.')[1:])}"
                self.room.tables[name] = value
                return ast.Name(name, ast.Load())
        return None

    def listed(self, node: ast.expr) -> tuple[object, ...] | None:
        """The tuple of a module's that a name stands for."""
        found = self.room.sources.resolve(self.function.source, node)
        value = found[0].constants.get(found[1]) if found else None
        return value if isinstance(value, tuple) else None


def number(value: float) -> ast.expr:
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        name = ast.Name("NAN" if isnan(value) else "INFINITY", ast.Load())
        return ast.UnaryOp(ast.USub(), name) if value < 0 else name
    return ast.Constant(value)


def indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
