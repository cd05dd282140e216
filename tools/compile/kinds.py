"""The types of the kernels' source, by their names there, and what C calls them."""

ELEMENTS = {
    "Floats": "double",
    "Singles": "float",
    "Ints": "int64_t",
    "Words": "int32_t",
    "Bytes": "int8_t",
    "Flags": "uint8_t",
    "Octets": "uint8_t",
    "Shorts": "uint16_t",
    "Counts": "uint32_t",
    "Longs": "uint64_t",
}
"""Array aliases of ``orrery.base.compiled``, by element; a number behind the name is its number of axes."""
READ_AS = {
    "Floats": "float",
    "Singles": "single",
    "Ints": "int",
    "Words": "word",
    "Bytes": "byte",
    "Flags": "byte",
    "Octets": "word",
    "Shorts": "word",
    "Counts": "int",
    "Longs": "long",
}
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
    "bool": "bint",
    "byte": "int8_t",
    "word": "int32_t",
    "int": "int64_t",
    "long": "uint64_t",
    "single": "float",
    "float": "double",
}
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
    "int64_t": "except? -9009009009",
    "int32_t": "except? -900900900",
    "double": "except? -9009009009.0",
    "float": "except? -900900.0",
    "bint": "except? -9",
}
BITS = {
    "bits_of_single": ("word", "float", "int32_t"),
    "single_of_bits": ("single", "int32_t", "float"),
    "bits_of_float": ("int", "double", "int64_t"),
    "float_of_bits": ("float", "int64_t", "double"),
}
"""Functions of ``orrery.base.compiled`` that read a number's bits as another: what they answer with, from and to."""
MATHS = {
    "ceil",
    "floor",
    "sqrt",
    "log2",
    "log10",
    "log",
    "exp",
    "cbrt",
    "rint",
    "trunc",
    "copysign",
    "fabs",
    "pow",
}

DTYPES = {
    "double": "f8",
    "float": "f4",
    "int64_t": "i8",
    "int32_t": "i4",
    "int8_t": "i1",
    "uint8_t": "u1",
    "uint16_t": "u2",
    "uint32_t": "u4",
    "uint64_t": "u8",
}
LETTERS = {"f": "fd", "i": "bhilq", "u": "BHILQ?"}
"""How the buffer protocol spells kinds of elements, at any size."""


class Refused(Exception):
    """A source that cannot be translated; says where and why."""


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
