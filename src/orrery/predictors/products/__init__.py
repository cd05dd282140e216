"""Time and power of dense products: samples, drawn or measured, and what learns from them."""
