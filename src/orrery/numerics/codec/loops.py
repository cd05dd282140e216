# pyright: reportUnknownMemberType=false
"""The compiled loops of ``_kernel.py`` with a type, for the files that call them."""

from collections.abc import Callable
from typing import cast

from orrery.numerics.codec import _kernel as kernel

Loop = Callable[..., None]

round_nearest_f32 = cast(Loop, kernel.round_nearest_f32)
round_powers_f32 = cast(Loop, kernel.round_powers_f32)
round_bits_f32 = cast(Loop, kernel.round_bits_f32)
round_f64 = cast(Loop, kernel.round_f64)
look_up_f32 = cast(Loop, kernel.look_up_f32)
look_up_f64 = cast(Loop, kernel.look_up_f64)
encode_f32 = cast(Loop, kernel.encode_f32)
encode_f64 = cast(Loop, kernel.encode_f64)
encode_fixed = cast(Loop, kernel.encode_fixed)
encode_bits_f32 = cast(Loop, kernel.encode_bits_f32)
decode_table = cast(Loop, kernel.decode_table)
decode_fixed = cast(Loop, kernel.decode_fixed)
group_amax = cast(Loop, kernel.group_amax)
group_ends = cast(Loop, kernel.group_ends)
round_groups_f32 = cast(Loop, kernel.round_groups_f32)
divide_groups = cast(Loop, kernel.divide_groups)
multiply_groups = cast(Loop, kernel.multiply_groups)
add_errors = cast(Loop, kernel.add_errors)
add_sizes = cast(Loop, kernel.add_sizes)
add_groups = cast(Loop, kernel.add_groups)
