"""The inputs of the learned correction of attention kernels."""
