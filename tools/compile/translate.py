"""From the kernels' Python source to one Cython module a room.

A function marked ``@compiled`` in a file of its room, and every function that it calls, becomes a C function. Types
come from the annotations; arrays are where they begin and their sizes; constants of modules become literals; named
tuples become extension types with typed fields; rules, which are called through an argument whose type is a
``Callable``, become addresses. What the translation does not know is refused here or by Cython, never guessed.
"""

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf, isinf, isnan, nan
from pathlib import Path
from types import MappingProxyType

ELEMENTS = {
    "Floats": "double", "Singles": "float", "Ints": "int64_t", "Words": "int32_t", "Bytes": "int8_t",
    "Flags": "uint8_t", "Octets": "uint8_t", "Shorts": "uint16_t", "Counts": "uint32_t", "Longs": "uint64_t",
}  # fmt: skip
"""Array aliases of ``orrery.base.compiled``, by element; a number behind the name is its number of axes."""
READ_AS = {
    "Floats": "float", "Singles": "single", "Ints": "int", "Words": "word", "Bytes": "byte", "Flags": "byte",
    "Octets": "word", "Shorts": "word", "Counts": "int", "Longs": "long",
}  # fmt: skip
"""The numbers that elements are, once read."""
ALTERNATIVES = {
    "Numbers": ("Singles", "Floats"),
    "ShortCodes": ("Octets", "Shorts"),
    "Codes": ("Octets", "Shorts", "Counts"),
    "LongCodes": ("Octets", "Shorts", "Counts", "Longs"),
    "Entries": ("Singles", "Floats", "Octets", "Shorts"),
}
"""Aliases that stand for one of several: a function is compiled for each, and all its arguments of that alias agree."""
SCALARS = {
    "bool": "bint", "byte": "int8_t", "word": "int32_t", "int": "int64_t", "long": "uint64_t", "single": "float",
    "float": "double",
}  # fmt: skip
"""Numbers, by the names of annotations, each able to hold those before it."""
NUMPY_SCALARS = {
    "int32": "word",
    "int64": "int",
    "uint64": "long",
    "float32": "single",
    "float64": "float",
    "int8": "byte",
}
ERRORS = {
    "int64_t": "except? -9009009009", "int32_t": "except? -900900900", "double": "except? -9009009009.0",
    "float": "except? -900900.0", "bint": "except? -9",
}  # fmt: skip
BITS = {
    "bits_of_single": ("word", "float", "int32_t"), "single_of_bits": ("single", "int32_t", "float"),
    "bits_of_float": ("int", "double", "int64_t"), "float_of_bits": ("float", "int64_t", "double"),
}  # fmt: skip
"""Functions of ``orrery.base.compiled`` that read a number's bits as another: what they answer with, from and to."""
MATHS = {
    "ceil", "floor", "sqrt", "log2", "log10", "log", "exp", "cbrt", "rint", "trunc", "copysign", "fabs", "pow",
}  # fmt: skip

PRELUDE = """# Written by tools/compile from {sources}.
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, infer_types=False
# cython: cdivision=True, nonecheck=False, binding=False, embedsignature=False
cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, NAN, ceil, floor, {maths}
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove
import numpy as np

cdef extern from *:
    \"\"\"
    #define orrery_pair(name, type) \\
        static inline type orrery_max_##name(type a, type b) {{ return b > a ? b : a; }} \\
        static inline type orrery_min_##name(type a, type b) {{ return b < a ? b : a; }}
    orrery_pair(double, double)
    orrery_pair(float, float)
    orrery_pair(int64_t, int64_t)
    orrery_pair(int32_t, int32_t)
    orrery_pair(uint64_t, uint64_t)
    #define orrery_bits(name, from, to) \\
        static inline to orrery_##name(from x) {{ to y; memcpy(&y, &x, sizeof y); return y; }}
    orrery_bits(bits_of_single, float, int32_t)
    orrery_bits(single_of_bits, int32_t, float)
    orrery_bits(bits_of_float, double, int64_t)
    orrery_bits(float_of_bits, int64_t, double)
    #if defined(__x86_64__) && defined(__GNUC__)
    #define orrery_has_wide() (__builtin_cpu_init(), __builtin_cpu_supports("avx2") != 0)
    #else
    #define orrery_has_wide() 0
    #endif
    \"\"\"
    bint orrery_has_wide() noexcept
    int32_t orrery_bits_of_single(float) noexcept
    float orrery_single_of_bits(int32_t) noexcept
    int64_t orrery_bits_of_float(double) noexcept
    double orrery_float_of_bits(int64_t) noexcept
    double orrery_max_double(double, double) noexcept
    double orrery_min_double(double, double) noexcept
    float orrery_max_float(float, float) noexcept
    float orrery_min_float(float, float) noexcept
    int64_t orrery_max_int64_t(int64_t, int64_t) noexcept
    int64_t orrery_min_int64_t(int64_t, int64_t) noexcept
    int32_t orrery_max_int32_t(int32_t, int32_t) noexcept
    int32_t orrery_min_int32_t(int32_t, int32_t) noexcept
    uint64_t orrery_max_uint64_t(uint64_t, uint64_t) noexcept
    uint64_t orrery_min_uint64_t(uint64_t, uint64_t) noexcept


@cython.cdivision(False)
cdef inline int64_t orrery_floordiv(int64_t a, int64_t b) except? -9009009009:
    return a // b


@cython.cdivision(False)
cdef inline int64_t orrery_mod(int64_t a, int64_t b) except? -9009009009:
    return a % b


cdef inline int64_t orrery_int(double x) noexcept:
    return <int64_t> x


cdef inline double orrery_float(double x) noexcept:
    return x


cdef inline bint orrery_bool(double x) noexcept:
    return x != 0.0


SOURCES = {digests!r}
HAS_WIDE = orrery_has_wide()
cdef object orrery_empty = np.empty
cdef object orrery_zeros = np.zeros


cdef int orrery_array(
    object given, str name, int axes, str kinds, Py_ssize_t size, bint is_written, void** at, int64_t* sizes
) except -1:
    cdef Py_buffer view
    cdef int k
    PyObject_GetBuffer(given, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if is_written else 0))
    cdef bint is_right = view.ndim == axes and view.itemsize == size and chr(view.format[0]) in kinds
    if is_right:
        at[0] = view.buf
        for k in range(axes):
            sizes[k] = view.shape[k]
    PyBuffer_Release(&view)
    if not is_right:
        raise TypeError(
            f"{{name}} is an array of {{given.dtype}} with {{given.ndim}} axes; "
            f"give {{axes}} axes of {{kinds[0]}}{{size}}."
        )
    return 0
"""

ARRAY = """ctypedef struct {kind}:
    {c}* at
{sizes}


cdef inline {kind} {kind}_of({c}* at, {params}) noexcept:
    cdef {kind} made
    made.at = at
{stores}
    return made


cdef inline int {kind}_in({kind}* to, object given, str name, bint is_written) except -1:
    cdef void* at = NULL
    cdef int64_t sizes[{axes}]
    orrery_array(given, name, {axes}, {letters!r}, sizeof({c}), is_written, &at, sizes)
    to[0] = {kind}_of(<{c}*> at, {read})
    return 0
"""
"""An array: where it begins, and its sizes. Whoever calls holds the object that owns it."""

ROW = """cdef inline int {kind}_fill({kind} to, {c} value) noexcept:
    cdef int64_t i
    for i in range(to.n0):
        to.at[i] = value
    return 0


cdef inline int {kind}_copy({kind} to, {kind} of) noexcept:
    memmove(to.at, of.at, <size_t> (to.n0 if to.n0 < of.n0 else of.n0) * sizeof({c}))
    return 0


cdef inline object {kind}_out({kind} x):
    return np.asarray(<{c}[:x.n0:1]> x.at) if x.n0 > 0 else np.empty(0, np.dtype({dtype!r}))
"""
"""What arrays of one axis can do besides."""

DTYPES = {
    "double": "f8", "float": "f4", "int64_t": "i8", "int32_t": "i4", "int8_t": "i1", "uint8_t": "u1", "uint16_t": "u2",
    "uint32_t": "u4", "uint64_t": "u8",
}  # fmt: skip
LETTERS = {"f": "fd", "i": "bhilq", "u": "BHILQ?"}
"""How the buffer protocol spells kinds of elements, at any size."""


class Refused(Exception):
    """A source that cannot be translated; says where and why."""


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
        """The source of a module."""
        if name not in self.by_name:
            path = self.root / (name.replace(".", "/") + ".py")
            self.by_name[name] = self._parsed(name, path)
        return self.by_name[name]

    def is_kernel(self, name: str) -> bool:
        """Whether a module may be translated: it lies in a house's engine room, or is a technique's."""
        return name.endswith("._kernel") or ".techniques." in name

    def _parsed(self, name: str, path: Path) -> Source:
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


def is_array(annotation: str) -> bool:
    """Whether an annotation is one of the array aliases."""
    return annotation.rstrip("0123456789") in ELEMENTS


def base_and_axes(kind: str) -> tuple[str, int]:
    """An array alias without its number of axes, and that number."""
    base = kind.rstrip("0123456789")
    return base, int(kind[len(base) :] or 1)


def with_axes(base: str, axes: int) -> str:
    """The alias of an array with so many axes."""
    return base + (str(axes) if axes > 1 else "")


class Room:
    """All that one extension module holds."""

    def __init__(self, sources: Sources, names: list[str], rules: list[str]) -> None:
        self.sources = sources
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
        for name in rules:
            source = sources.read(name)
            for node in source.functions.values():
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "compiled_rule":
                        found = sources.resolve(source, decorator.args[0])
                        if found is None:
                            raise Refused(f"{source.path}:{node.lineno}: compiled_rule names no known type of rule.")
                        self.rules.append((name, self.need(source, node.name), self.rule_type(*found)))
        self._find_written()
        self._find_raising()

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
                    if (
                        isinstance(target, ast.Name)
                        and target.id in function.written
                        and isinstance(value, ast.Subscript)
                    ):
                        if isinstance(value.value, ast.Name):
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
            function.may_raise |= is_array(function.returns)
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

    # -- writing ------------------------------------------------------------------------------------------------------

    def text(self, digests: dict[str, str]) -> str:
        """The whole module."""
        bodies = [self._function(f) for f in self.functions.values()]
        classes = [self._class(at, node) for at, node in self.classes.values()]
        rules = [self._rule_class(at, name) for (_, name), (at, _) in self.rule_types.items()]
        tables = [
            f"cdef double[{len(values)}] {name}\n" + "".join(f"{name}[{i}] = {v!r}\n" for i, v in enumerate(values))
            for name, values in self.tables.items()
        ]
        head = PRELUDE.format(
            sources=", ".join(self.names), digests=digests, maths=", ".join(sorted(self.maths | {"fabs"}))
        )
        doors = [self._door(f) for _, _, functions in self.exports for f in functions]
        doors += [self._chooser(functions) for _, _, functions in self.exports if len(functions) > 1]
        index = (
            "FUNCTIONS = {\n"
            + "".join(f"    ({name!r}, {of!r}): {self._entrance(functions)},\n" for name, of, functions in self.exports)
            + "}\n"
        )
        index += (
            "RULES = {\n"
            + "".join(f"    ({name!r}, {f.node.name!r}): address_{f.c_name}(),\n" for name, f, _ in self.rules)
            + "}\n"
        )
        index += "CLASSES = {" + ", ".join(f"({n!r}, {c!r}): {c}" for n, c in [*self.classes, *self.rule_types]) + "}\n"
        rule_doors = [self._rule_door(f, kind) for _, f, kind in self.rules]
        arrays = [_array(kind) for kind in sorted(self.arrays)]
        return "\n\n".join([head, *arrays, *tables, *rules, *classes, *bodies, *rule_doors, *doors, index])

    def _class(self, at: Source, node: ast.ClassDef) -> str:
        fields = self.fields(node.name)
        lines = [f"cdef class {node.name}:"]
        lines += [f"    cdef {self.c_type(kind)} {name}" for name, kind in fields]
        lines += [f"    cdef object {name}_held" for name, kind in fields if is_array(kind)]
        lines += ["", "    def __init__(self, given):"]
        for name, kind in fields:
            value = f"given.{name}"
            if is_array(kind):
                lines.append(f"        self.{name}_held = {value}")
                lines.append(f"        {kind}_in(&self.{name}, self.{name}_held, {name!r}, True)")
                continue
            if kind in {c for _, c in self.classes}:
                value = f"{kind}({value})"
            lines.append(f"        self.{name} = {value}")
        return "\n".join(lines) + "\n"

    def _rule_signature(self, at: Source, name: str) -> tuple[list[str], str]:
        arguments = at.rules[name].slice.elts[0].elts  # pyright: ignore
        result = at.rules[name].slice.elts[1]  # pyright: ignore
        return [self.type_name(at, a) for a in arguments], ast.unparse(result)

    def _rule_class(self, at: Source, name: str) -> str:
        """A rule that is called by address, or through Python where it has none."""
        kinds, result = self._rule_signature(at, name)
        c_result = SCALARS[result]
        by_address = ", ".join("double*, int64_t" if is_array(k) else SCALARS[k] for k in kinds)
        params = ", ".join(f"{self.c_type(k)} x{i}" for i, k in enumerate(kinds))
        flat = ", ".join(f"x{i}.at, x{i}.n0" if is_array(k) else f"x{i}" for i, k in enumerate(kinds))
        plain = ", ".join(f"{k}_out(x{i})" if is_array(k) else f"x{i}" for i, k in enumerate(kinds))
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
"""

    def _rule_door(self, function: Function, kind: str) -> str:
        """A rule of the house at the signature that addresses have."""
        at = next(at for (_, name), (at, _) in self.rule_types.items() if name == kind)
        kinds, result = self._rule_signature(at, kind)
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
        params = ", ".join(f"{self.c_type(kind)} {name}" for name, kind in function.params)
        returns = function.returns
        if not function.may_raise and (returns in SCALARS or returns == "None" or returns.startswith("tuple[")):
            return f"cdef {self.c_type(returns) if returns != 'None' else 'int'} {function.c_name}({params}) noexcept:"
        if returns == "None":
            return f"cdef int {function.c_name}({params}) except -1:"
        if is_array(returns):
            return f"cdef object {function.c_name}({params}):"
        if returns.startswith("tuple["):
            return f"cdef {self.c_type(returns)} {function.c_name}({params}) except *:"
        if returns not in SCALARS:
            raise Refused(f"{function.where(function.node)}: {function.node.name} returns {returns}; write a number.")
        c = SCALARS[returns]
        return f"cdef {c} {function.c_name}({params}) {ERRORS[c]}:"

    def _function(self, function: Function) -> str:
        body = Body(self, function)
        lines = body.statements([n for n in function.node.body if not _is_docstring(n)], "    ")
        if function.returns == "None":
            lines.append("    return 0")
        declared = [f"    cdef {self.c_type(kind)} {name}" for name, kind in body.declarations().items()]
        declared += [f"    cdef object {name}_held" for name in sorted(body.made)]
        return "\n".join([self._signature(function), *declared, *lines, ""])

    def fields(self, name: str) -> list[tuple[str, str]]:
        """The fields of a class, with their types."""
        at, node = next(found for (_, c), found in self.classes.items() if c == name)
        return [
            (line.target.id, self.type_name(at, line.annotation))
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]

    def rule_result(self, name: str) -> str:
        """What a rule of this type answers with."""
        return self._rule_signature(next(at for (_, n), (at, _) in self.rule_types.items() if n == name), name)[1]

    def _door(self, function: Function) -> str:
        """What Python calls: finds where arrays begin, converts tables, and answers with Python's numbers or arrays."""
        classes = {c for _, c in self.classes}
        rules = {rule for _, rule in self.rule_types}
        lines: list[str] = []
        typed: list[str] = []
        given: list[str] = []
        for name, kind in function.params:
            is_object = kind in classes or kind in rules
            typed.append(name if is_object or is_array(kind) else f"{self.c_type(kind)} {name}")
            given.append(f"<{kind}?> {name}" if is_object else f"{name}_view" if is_array(kind) else name)
            if kind in classes:
                lines.append(f"    if not isinstance({name}, {kind}):\n        {name} = {kind}({name})")
            elif is_array(kind):
                lines.append(f"    cdef {self.c_type(kind)} {name}_view")
                lines.append(f"    {kind}_in(&{name}_view, {name}, {name!r}, {name in function.written})")
        call = f"{function.c_name}({', '.join(given)})"
        answer = f"    {call}" if function.returns == "None" else f"    return {call}"
        return "\n".join([f"def door_{function.c_name}({', '.join(typed)}):", *lines, answer, ""])

    def _entrance(self, functions: list[Function]) -> str:
        return f"door_{functions[0].c_name}" if len(functions) == 1 else f"choose_{functions[0].c_name}"

    def _chooser(self, functions: list[Function]) -> str:
        """What Python calls where arrays may be of several types: the function for those given."""
        names = [name for name, _ in functions[0].params]
        told = [i for i in range(len(names)) if len({f.params[i][1] for f in functions}) > 1]
        marks = ", ".join(f"{names[i]}.dtype.str[1:]" for i in told)
        keyed = ", ".join(
            f"({', '.join(repr(_mark(f.params[i][1])) for i in told)},): door_{f.c_name}" for f in functions
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


def _mark(kind: str) -> str:
    """What numpy calls the elements of an array, without the order of bytes."""
    return DTYPES[ELEMENTS[base_and_axes(kind)[0]]]


def _array(kind: str) -> str:
    """The struct of an array alias, with what makes and uses one."""
    base, axes = base_and_axes(kind)
    c = ELEMENTS[base]
    text = ARRAY.format(
        kind=kind, c=c, axes=axes, letters=LETTERS[DTYPES[c][0]],
        sizes="\n".join(f"    int64_t n{k}" for k in range(axes)),
        params=", ".join(f"int64_t n{k}" for k in range(axes)),
        stores="\n".join(f"    made.n{k} = n{k}" for k in range(axes)),
        read=", ".join(f"sizes[{k}]" for k in range(axes)),
    )  # fmt: skip
    return text if axes > 1 else text + "\n\n" + ROW.format(kind=kind, c=c, dtype=DTYPES[c])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class Body:
    """A function's statements with C's names in place of Python's, and the types of its local names."""

    def __init__(self, room: Room, function: Function) -> None:
        self.room = room
        self.function = function
        self.params = dict(function.params)
        self.types: dict[str, str] = dict(function.params)
        self.made: set[str] = set()  # arrays that this function made: the object stands beside the typed view
        self.rules = {name for _, name in room.rule_types}
        self.fields = {c: dict(room.fields(c)) for _, c in room.classes}
        self._settle_types()

    # -- types --------------------------------------------------------------------------------------------------------

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
            constant = self._constant(node)
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
        constant = self._constant(node)
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
        constant = self._constant(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else None
        if isinstance(constant, ast.Name) and constant.id in self.room.tables:
            return "float"
        of = self.kind(node.value)
        if of is None:
            return None
        base, axes = base_and_axes(of)
        left = axes - sum(not isinstance(one, ast.Slice) for one in _indices(node))
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

    # -- text ---------------------------------------------------------------------------------------------------------

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

        if _is_docstring(node) or isinstance(node, ast.Pass):
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
            constant = self._constant(node)
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
        index = _indices(node)
        fixed = [one for one in index if not isinstance(one, ast.Slice)]
        if len(index) - len(fixed) > 1 or any(isinstance(one, ast.Slice) for one in index[:-1]):
            raise Refused(f"{self.function.where(node)}: {ast.unparse(node)} does not lie in one piece.")
        place = ""
        for k, one in enumerate(fixed):
            place = f"({place}) * {whole}.n{k} + ({self.text(one)})" if place else f"({self.text(one)})"
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

    def _constant(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in self.types:
            return None
        found = self.room.sources.resolve(self.function.source, node)
        if found and found[1] in found[0].constants:
            value = found[0].constants[found[1]]
            if isinstance(value, int | float):
                return _number(value)
            if isinstance(value, tuple) and all(isinstance(v, int | float) for v in value):
                name = f"{found[1]}_{'_'.join(found[0].name.split('.')[1:])}"
                self.room.tables[name] = value
                return ast.Name(name, ast.Load())
        return None

    def _listed(self, node: ast.expr) -> tuple[object, ...] | None:
        """The tuple of a module's that a name stands for."""
        found = self.room.sources.resolve(self.function.source, node)
        value = found[0].constants.get(found[1]) if found else None
        return value if isinstance(value, tuple) else None

    def _attribute(self, node: ast.Attribute) -> str:
        text = ast.unparse(node)
        if text in ("np.inf", "math.inf"):
            return "INFINITY"
        if text in ("np.nan", "math.nan"):
            return "NAN"
        if node.attr in ("size", "shape"):
            whole, axes = self.text(node.value), base_and_axes(self.kind(node.value) or "")[1]
            return (" * " if node.attr == "size" else ", ").join(f"{whole}.n{k}" for k in range(axes))
        constant = self._constant(node)
        if constant is not None:
            return ast.unparse(constant)
        return f"{self.text(node.value)}.{node.attr}"

    def _call(self, node: ast.Call) -> str:
        if node.keywords:
            raise Refused(f"{self.function.where(node)}: a call with keywords.")
        if ast.unparse(node.func) == "len" and (listed := self._listed(node.args[0])) is not None:
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


OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not ", ast.Invert: "~"}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_dtype(node: ast.expr) -> bool:
    """Whether an expression names elements of an array that is made."""
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in NUMPY_SCALARS


def _wrapped(text: str) -> str:
    return f"({text})"


def _loaded(node: ast.expr) -> ast.expr:
    """A target as a value."""
    return ast.parse(ast.unparse(node), mode="eval").body


def _number(value: float) -> ast.expr:
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        name = ast.Name("NAN" if isnan(value) else "INFINITY", ast.Load())
        return ast.UnaryOp(ast.USub(), name) if value < 0 else name
    return ast.Constant(value)
