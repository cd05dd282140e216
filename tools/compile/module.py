"""From the kernels' Python source to one Cython module a room.

A function marked ``@compiled`` in a file of its room, and every function that it calls, becomes a C function. Types
come from the annotations; arrays are where they begin and their sizes; constants of modules become literals; named
tuples become extension types with typed fields; rules, which are called through an argument whose type is a
``Callable``, become addresses. What the translation does not know is refused here or by Cython, never guessed.
"""

import ast

from compile.body import Body, is_docstring
from compile.kinds import ERRORS, SCALARS, Refused, is_array
from compile.room import Function, Room
from compile.sources import Source
from compile.templates import PRELUDE, array_text, mark_of


class Module:
    """The text of a room's module."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def text(self, digests: dict[str, str]) -> str:
        """The whole module."""
        bodies = [self._function(f) for f in self.room.functions.values()]
        classes = [self._class(node) for _, node in self.room.classes.values()]
        rules = [self._rule_class(at, name) for (_, name), (at, _) in self.room.rule_types.items()]
        tables = [
            f"cdef double[{len(values)}] {name}\n" + "".join(f"{name}[{i}] = {v!r}\n" for i, v in enumerate(values))
            for name, values in self.room.tables.items()
        ]
        head = PRELUDE.format(
            sources=", ".join(self.room.names), digests=digests, maths=", ".join(sorted(self.room.maths | {"fabs"}))
        )
        doors = [self._door(f) for _, _, functions in self.room.exports for f in functions]
        doors += [self._chooser(functions) for _, _, functions in self.room.exports if len(functions) > 1]
        index = (
            "FUNCTIONS = {\n"
            + "".join(
                f"    ({name!r}, {of!r}): {self._entrance(functions)},\n" for name, of, functions in self.room.exports
            )
            + "}\n"
        )
        index += (
            "RULES = {\n"
            + "".join(f"    ({name!r}, {f.node.name!r}): address_{f.c_name}(),\n" for name, f, _ in self.room.rules)
            + "}\n"
        )
        index += (
            "CLASSES = {"
            + ", ".join(f"({n!r}, {c!r}): {c}" for n, c in [*self.room.classes, *self.room.rule_types])
            + "}\n"
        )
        rule_doors = [self._rule_door(f, kind) for _, f, kind in self.room.rules]
        arrays = [array_text(kind) for kind in sorted(self.room.arrays)]
        return "\n\n".join([head, *arrays, *tables, *rules, *classes, *bodies, *rule_doors, *doors, index])

    def _class(self, node: ast.ClassDef) -> str:
        fields = self.room.fields(node.name)
        lines = [f"cdef class {node.name}:"]
        lines += [f"    cdef {self.room.c_type(kind)} {name}" for name, kind in fields]
        lines += [f"    cdef object {name}_held" for name, kind in fields if is_array(kind)]
        lines += ["", "    def __init__(self, given):"]
        for name, kind in fields:
            value = f"given.{name}"
            if is_array(kind):
                lines.append(f"        self.{name}_held = {value}")
                lines.append(f"        {kind}_in(&self.{name}, self.{name}_held, {name!r}, True)")
                continue
            if kind in {c for _, c in self.room.classes}:
                value = f"{kind}({value})"
            lines.append(f"        self.{name} = {value}")
        return "\n".join(lines) + "\n"

    def _rule_class(self, at: Source, name: str) -> str:
        """A rule that is called by address, or through Python where it has none."""
        kinds, result = self.room.rule_signature(at, name)
        c_result = SCALARS[result]
        by_address = ", ".join("double*, int64_t" if is_array(k) else SCALARS[k] for k in kinds)
        params = ", ".join(f"{self.room.c_type(k)} x{i}" for i, k in enumerate(kinds))
        flat = ", ".join(f"x{i}.at, x{i}.n0" if is_array(k) else f"x{i}" for i, k in enumerate(kinds))
        plain = ", ".join(f"{k}_out(x{i})" if is_array(k) else f"x{i}" for i, k in enumerate(kinds))
        entered = "\n".join(
            f"        cdef {k} x{i}\n        {k}_in(&x{i}, given{i}, 'given{i}', False)"
            if is_array(k)
            else f"        cdef {SCALARS[k]} x{i} = given{i}"
            for i, k in enumerate(kinds)
        )
        return f"""ctypedef {c_result} (*{name}Address)({by_address}) {ERRORS[c_result]}


cdef class {name}:
    cdef {name}Address address
    cdef object rule

    def __init__(self, rule, size_t address):
        self.rule, self.address = rule, <{name}Address> address

    cdef inline {c_result} call(self, {params}) {ERRORS[c_result]}:
        if self.address != NULL:
            return self.address({flat})
        return self.rule({plain})

    def __call__(self, {", ".join(f"given{i}" for i in range(len(kinds)))}):
{entered}
        return self.call({", ".join(f"x{i}" for i in range(len(kinds)))})
"""

    def _rule_door(self, function: Function, kind: str) -> str:
        """A rule of the house at the signature that addresses have."""
        at = next(at for (_, name), (at, _) in self.room.rule_types.items() if name == kind)
        kinds, result = self.room.rule_signature(at, kind)
        c_result = SCALARS[result]
        params = ", ".join(
            f"double* x{i}, int64_t n{i}" if is_array(k) else f"{SCALARS[k]} x{i}" for i, k in enumerate(kinds)
        )
        given = ", ".join(f"{k}_of(x{i}, n{i})" if is_array(k) else f"x{i}" for i, k in enumerate(kinds))
        return f"""cdef {c_result} rule_{function.c_name}({params}) {ERRORS[c_result]}:
    return {function.c_name}({given})


cdef size_t address_{function.c_name}():
    return <size_t> <void*> rule_{function.c_name}
"""

    def _signature(self, function: Function) -> str:
        params = ", ".join(f"{self.room.c_type(kind)} {name}" for name, kind in function.params)
        returns = function.returns
        if not function.may_raise and (returns in SCALARS or returns == "None" or returns.startswith("tuple[")):
            c = self.room.c_type(returns) if returns != "None" else "int"
            return f"cdef {c} {function.c_name}({params}) noexcept:"
        if returns == "None":
            return f"cdef int {function.c_name}({params}) except -1:"
        if is_array(returns):
            return f"cdef object {function.c_name}({params}):"
        if returns.startswith("tuple["):
            return f"cdef {self.room.c_type(returns)} {function.c_name}({params}) except *:"
        if returns not in SCALARS:
            raise Refused(f"{function.where(function.node)}: {function.node.name} returns {returns}; write a number.")
        c = SCALARS[returns]
        return f"cdef {c} {function.c_name}({params}) {ERRORS[c]}:"

    def _function(self, function: Function) -> str:
        body = Body(self.room, function)
        lines = body.statements([n for n in function.node.body if not is_docstring(n)], "    ")
        if function.returns == "None":
            lines.append("    return 0")
        declared = [f"    cdef {self.room.c_type(kind)} {name}" for name, kind in body.declarations().items()]
        declared += [f"    cdef object {name}_held" for name in sorted(body.made)]
        return "\n".join([self._signature(function), *declared, *lines, ""])

    def _door(self, function: Function) -> str:
        """What Python calls: finds where arrays begin, converts tables, and answers with Python's numbers or arrays."""
        classes = {c for _, c in self.room.classes}
        rules = {rule for _, rule in self.room.rule_types}
        lines: list[str] = []
        typed: list[str] = []
        given: list[str] = []
        for name, kind in function.params:
            is_object = kind in classes or kind in rules
            typed.append(name if is_object or is_array(kind) else f"{self.room.c_type(kind)} {name}")
            given.append(f"<{kind}?> {name}" if is_object else f"{name}_view" if is_array(kind) else name)
            if kind in classes:
                lines.append(f"    if not isinstance({name}, {kind}):\n        {name} = {kind}({name})")
            elif is_array(kind):
                lines.append(f"    cdef {self.room.c_type(kind)} {name}_view")
                lines.append(f"    {kind}_in(&{name}_view, {name}, {name!r}, {name in function.written})")
        call = f"{function.c_name}({', '.join(given)})"
        answer = f"    {call}" if function.returns == "None" else f"    return {call}"
        return "\n".join([f"def door_{function.c_name}({', '.join(typed)}):", *lines, answer, ""])

    def _entrance(self, functions: list[Function]) -> str:
        return f"door_{functions[0].c_name}" if len(functions) == 1 else f"choose_{functions[0].c_name}"

    def _chooser(self, functions: list[Function]) -> str:
        """What Python calls where arrays may be of several types: the function for those given."""
        names = [name for name, _ in functions[0].params]
        description = [i for i in range(len(names)) if len({f.params[i][1] for f in functions}) > 1]
        marks = ", ".join(f"{names[i]}.dtype.str[1:]" for i in description)
        keyed = ", ".join(
            f"({', '.join(repr(mark_of(f.params[i][1])) for i in description)},): door_{f.c_name}" for f in functions
        )
        entrance = self._entrance(functions)
        return f"""cdef dict {entrance}_doors = {{{keyed}}}


def {entrance}({", ".join(names)}):
    door = {entrance}_doors.get(({marks},))
    if door is None:
        raise TypeError(
            f"{functions[0].node.name} takes no arrays of {{({marks},)}}; it takes {{list({entrance}_doors)}}."
        )
    return door({", ".join(names)})
"""
