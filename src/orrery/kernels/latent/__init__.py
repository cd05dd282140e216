"""DeepSeek's latent attention: prompts with expanded heads, decode steps over shared latents, and the absorption."""

from orrery.kernels.latent.absorb import predict_absorb
from orrery.kernels.latent.decode import predict_decode
from orrery.kernels.latent.prefill import predict_prefill

__all__ = ["predict_absorb", "predict_decode", "predict_prefill"]
