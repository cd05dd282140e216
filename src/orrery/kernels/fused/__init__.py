"""Several kernels in one: what stays on chip, what is launched once, and what that is worth."""
