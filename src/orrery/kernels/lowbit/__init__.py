"""Products of few bits on devices: any width from packed loads, single bits, mixed widths, tables, systolic arrays."""
