"""A function's statements in Cython."""

import ast

from compile.kinds import BITS, ELEMENTS, MATHS, NUMPY_SCALARS, SCALARS, Refused, base_and_axes, is_array, with_axes
from compile.types_of import Types, indices


class Body(Types):
    """A function's statements with C's names in place of Python's."""

    def declarations(self) -> dict[str, str]:
        """Local names and their types."""
        return {name: kind for name, kind in self.types.items() if name not in self.params and kind}

    def statements(self, nodes: list[ast.stmt], indent: str) -> list[str]:
        """The lines of a block."""
        lines: list[str] = []
        for node in nodes:
            lines += [indent + line if line[:1] != "\t" else line[1:] for line in self._statement(node, indent)]
        return lines or [indent + "pass"]

    def _statement(self, node: ast.stmt, indent: str) -> list[str]:
        def block(nodes: list[ast.stmt]) -> list[str]:
            return ["\t" + line for line in self.statements(nodes, indent + "    ")]

        if is_docstring(node) or isinstance(node, ast.Pass):
            return ["pass"]
        if isinstance(node, ast.Expr):
            return [self.text(node.value)]
        if isinstance(node, ast.Assign):
            return self._assigned(node)
        if isinstance(node, ast.AnnAssign):
            return self._made(node)
        if isinstance(node, ast.AugAssign):
            if isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Pow):
                value = ast.BinOp(_loaded(node.target), node.op, node.value)
                return [f"{self.text(node.target)} = {self.text(value)}"]
            return [f"{self.text(node.target)} {OPERATORS[type(node.op)]}= {self.text(node.value)}"]
        if isinstance(node, ast.If):
            lines = [f"if {self.text(node.test)}:", *block(node.body)]
            return lines + (["else:", *block(node.orelse)] if node.orelse else [])
        if isinstance(node, ast.While):
            return [f"while {self.text(node.test)}:", *block(node.body)]
        if isinstance(node, ast.For):
            return [f"for {self.text(node.target)} in {self.text(node.iter)}:", *block(node.body)]
        if isinstance(node, ast.Break | ast.Continue):
            return [ast.unparse(node)]
        if isinstance(node, ast.Return):
            return [self._return(node)]
        raise Refused(f"{self.function.where(node)}: {type(node).__name__} cannot be translated.")

    def _assigned(self, node: ast.Assign) -> list[str]:
        if len(node.targets) > 1:
            return [" = ".join([*(self.text(t) for t in node.targets), self.text(node.value)])]
        target, of = node.targets[0], self.kind(node.value)
        if isinstance(target, ast.Tuple) and of is not None and is_array(of):  # an array's first elements by name
            whole = self.text(node.value)
            return [f"{self.text(one)} = {whole}.at[{i}]" for i, one in enumerate(target.elts)]
        if isinstance(target, ast.Subscript):
            to = self.kind(target)
            if to is not None and is_array(to):
                if to != of and (to not in ELEMENTS or of is None or is_array(of)):
                    raise Refused(f"{self.function.where(node)}: only rows are filled, or copied from rows alike.")
                return [f"{to}_{'copy' if to == of else 'fill'}({self.text(target)}, {self.text(node.value)})"]
            array = self.kind(target.value)
            if array is not None and is_array(array) and of in ("float", "weak float", "single"):
                c = ELEMENTS[base_and_axes(array)[0]]
                return [f"{self.text(target)} = <{c}> {_wrapped(self.text(node.value))}"]
        return [f"{self.text(target)} = {self.text(node.value)}"]

    def _made(self, node: ast.AnnAssign) -> list[str]:
        name = ast.unparse(node.target)
        if node.value is None:
            return ["pass"]
        callee = self.room.callee(self.function, node.value) if isinstance(node.value, ast.Call) else None
        is_new = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("np.empty", "np.zeros")
        if is_new or (callee is not None and is_array(callee.returns)):
            self.made.add(name)
            return [
                f"{name}_held = {self.text(node.value)}",
                f"{self.types[name]}_in(&{name}, {name}_held, {name!r}, True)",
            ]
        return [f"{name} = {self.text(node.value)}"]

    def _return(self, node: ast.Return) -> str:
        if self.function.returns == "None":
            return "return 0"
        if isinstance(node.value, ast.Name) and node.value.id in self.made:
            return f"return {node.value.id}_held"
        return f"return {self.text(node.value)}" if node.value else "return"

    def text(self, node: ast.expr) -> str:
        """An expression."""
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Name):
            if node.id in self.types:
                return node.id
            constant = self.constant(node)
            if constant is None:
                raise Refused(f"{self.function.where(node)}: {node.id} is unknown.")
            return ast.unparse(constant)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Tuple):
            return ", ".join(self.text(one) for one in node.elts)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.UnaryOp):
            return f"({UNARY[type(node.op)]}{self.text(node.operand)})"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            return "(" + word.join(self.text(one) for one in node.values) + ")"
        if isinstance(node, ast.IfExp):
            if isinstance(node.body, ast.Tuple) or isinstance(node.orelse, ast.Tuple):
                raise Refused(f"{self.function.where(node)}: a choice between tuples; choose each number.")
            return f"({self.text(node.body)} if {self.text(node.test)} else {self.text(node.orelse)})"
        if isinstance(node, ast.Call):
            return self._call(node)
        raise Refused(f"{self.function.where(node)}: {ast.unparse(node)} cannot be translated.")

    def _subscript(self, node: ast.Subscript) -> str:
        """An element, or the part of an array that lies in one piece: numbers first, then at most one slice."""
        whole, of = self.text(node.value), self.kind(node.value)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return f"{self.text(node.value.value)}.n{ast.unparse(node.slice)}"
        if of is None or not is_array(of):
            return f"{whole}[{self.text(node.slice)}]"
        if not isinstance(node.value, ast.Name | ast.Attribute):
            raise Refused(f"{self.function.where(node)}: {ast.unparse(node)} takes a part of a part; write one index.")
        base, axes = base_and_axes(of)
        index = indices(node)
        fixed = [one for one in index if not isinstance(one, ast.Slice)]
        if len(index) - len(fixed) > 1 or any(isinstance(one, ast.Slice) for one in index[:-1]):
            raise Refused(f"{self.function.where(node)}: {ast.unparse(node)} does not lie in one piece.")
        place = ""
        for k, one in enumerate(fixed):
            at = self.text(one)
            if self.room.checks_bounds:
                at = f"orrery_inside({at}, {whole}.n{k})"
            place = f"({place}) * {whole}.n{k} + ({at})" if place else f"({at})"
        if len(fixed) == axes:
            return f"{whole}.at[{place}]"
        sizes = [f"{whole}.n{k}" for k in range(len(fixed), axes)]
        start = [" * ".join([f"({place})", *sizes])] if place else []
        last = index[-1]
        if isinstance(last, ast.Slice):
            low = self.text(last.lower) if last.lower else "0"
            high = f"orrery_min_int64_t({self.text(last.upper)}, {sizes[0]})" if last.upper else sizes[0]
            start.append(" * ".join([f"({low})", *sizes[1:]]))
            sizes[0] = f"{high} - ({low})"
        kind = with_axes(base, axes - len(fixed))
        return f"{kind}_of({' + '.join([f'{whole}.at', *start])}, {', '.join(sizes)})"

    def _comparison(self, node: ast.Compare) -> str:
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(node.comparators[0], ast.Tuple):
            left = self.text(node.left)
            word, joint = ("==", " or ") if isinstance(node.ops[0], ast.In) else ("!=", " and ")
            return "(" + joint.join(f"{left} {word} {self.text(one)}" for one in node.comparators[0].elts) + ")"
        parts = [self.text(node.left)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts += [COMPARISONS[type(op)], self.text(right)]
        return "(" + " ".join(parts) + ")"

    def _operation(self, node: ast.BinOp) -> str:
        left, right = self.text(node.left), self.text(node.right)
        kind = self._binary(node.op, self.kind(node.left), self.kind(node.right))
        if isinstance(node.op, ast.Pow):
            self.room.maths.add("pow")
            return f"pow({left}, {right})"
        if isinstance(node.op, ast.FloorDiv):
            return (
                f"floor({left} / {right})" if kind in ("float", "weak float") else f"orrery_floordiv({left}, {right})"
            )
        if isinstance(node.op, ast.Mod):
            if kind in ("float", "weak float"):
                raise Refused(f"{self.function.where(node)}: % of fractions.")
            return f"orrery_mod({left}, {right})"
        if isinstance(node.op, ast.Div):
            return f"(orrery_float({left}) / {right})" if kind == "float" else f"({left} / {right})"
        if isinstance(node.op, ast.LShift) and kind == "int":
            left = f"<int64_t> {_wrapped(left)}"
        return f"({left} {OPERATORS[type(node.op)]} {right})"

    def _attribute(self, node: ast.Attribute) -> str:
        text = ast.unparse(node)
        if text in ("np.inf", "math.inf"):
            return "INFINITY"
        if text in ("np.nan", "math.nan"):
            return "NAN"
        if node.attr in ("size", "shape"):
            whole, axes = self.text(node.value), base_and_axes(self.kind(node.value) or "")[1]
            return (" * " if node.attr == "size" else ", ").join(f"{whole}.n{k}" for k in range(axes))
        constant = self.constant(node)
        if constant is not None:
            return ast.unparse(constant)
        return f"{self.text(node.value)}.{node.attr}"

    def _call(self, node: ast.Call) -> str:
        if node.keywords:
            raise Refused(f"{self.function.where(node)}: a call with keywords.")
        if ast.unparse(node.func) == "len" and (listed := self.listed(node.args[0])) is not None:
            return str(len(listed))
        given = [self.text(one) if not _is_dtype(one) else ast.unparse(one) for one in node.args]
        joined = ", ".join(given)
        if isinstance(node.func, ast.Name):
            name = node.func.id
            if self.params.get(name) in self.rules:
                return f"{name}.call({joined})"
            if name == "len":
                return f"{given[0]}.n0"
            if name in ("min", "max"):
                kind = {"weak int": "int", "weak float": "float", "bool": "int", "byte": "int"}.get(
                    k := self.kind(node) or "", k
                )
                whole = given[0]
                for one in given[1:]:
                    whole = f"orrery_{name}_{SCALARS[kind]}({whole}, {one})"
                return whole
            if name in ("int", "float", "bool"):
                return f"(<int64_t> {_wrapped(given[0])})" if name == "int" else f"orrery_{name}({joined})"
            if name in ("abs", "range"):
                return f"{name}({joined})"
            if name in BITS:
                return f"orrery_{name}({joined})"
        callee = self.room.callee(self.function, node)
        if callee is not None:
            return f"{callee.c_name}({joined})"
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            return self._library(node, given)
        raise Refused(f"{self.function.where(node)}: {ast.unparse(node.func)} cannot be called.")

    def _library(self, node: ast.Call, given: list[str]) -> str:
        """A function of numpy's or math's."""
        library, name = ast.unparse(node.func).split(".")
        if library in ("np", "math"):
            if name in NUMPY_SCALARS:
                return f"(<{SCALARS[NUMPY_SCALARS[name]]}> {_wrapped(given[0])})"
            if name == "abs":
                name = "fabs"
            if name in MATHS:
                if self.kind(node) == "single":
                    name += "f"
                self.room.maths.add(name)
                return f"{name}({', '.join(given)})"
            if library == "np" and name in ("empty", "zeros"):
                shape = f"({given[0]})" if isinstance(node.args[0], ast.Tuple) else given[0]
                return f"orrery_{name}({', '.join([shape, *given[1:]])})"
        raise Refused(f"{self.function.where(node)}: {library}.{name} has no counterpart in C here.")


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement only says something."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not ", ast.Invert: "~"}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _is_dtype(node: ast.expr) -> bool:
    """Whether an expression names elements of an array that is made."""
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in NUMPY_SCALARS


def _wrapped(text: str) -> str:
    return f"({text})"


def _loaded(node: ast.expr) -> ast.expr:
    """A target as a value."""
    return ast.parse(ast.unparse(node), mode="eval").body
