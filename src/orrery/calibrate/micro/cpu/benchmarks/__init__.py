"""Groups of microbenchmarks of the processor that runs this process: a module is one."""
