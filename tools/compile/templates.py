"""The parts of a module that are the same everywhere: helpers in C, and the struct of an array."""

from compile.kinds import DTYPES, ELEMENTS, LETTERS, base_and_axes

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


cdef inline int64_t orrery_inside(int64_t k, int64_t size) except -1:
    if k < 0 or k >= size:
        raise IndexError(f"{{k}} lies outside an axis of {{size}}.")
    return k


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


def mark_of(kind: str) -> str:
    """What numpy calls the elements of an array, without the order of bytes."""
    return DTYPES[ELEMENTS[base_and_axes(kind)[0]]]


def array_text(kind: str) -> str:
    """The struct of an array alias, with what makes and uses one."""
    base, axes = base_and_axes(kind)
    c = ELEMENTS[base]
    text = ARRAY.format(
        kind=kind,
        c=c,
        axes=axes,
        letters=LETTERS[DTYPES[c][0]],
        sizes="\n".join(f"    int64_t n{k}" for k in range(axes)),
        params=", ".join(f"int64_t n{k}" for k in range(axes)),
        stores="\n".join(f"    made.n{k} = n{k}" for k in range(axes)),
        read=", ".join(f"sizes[{k}]" for k in range(axes)),
    )
    return text if axes > 1 else text + "\n\n" + ROW.format(kind=kind, c=c, dtype=DTYPES[c])
