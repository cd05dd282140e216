"""The landing page: every accelerator at its best layout for one model, with published measurements beside."""
