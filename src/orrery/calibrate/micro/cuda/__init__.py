"""Microbenchmarks of an NVIDIA GPU: small CUDA programs, compiled by NVRTC and launched through the driver."""
