"""Groups of microbenchmarks of an NVIDIA GPU: a module is one."""
