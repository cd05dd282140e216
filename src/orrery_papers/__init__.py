"""Papers on AI compute, a folder each: what one states (``paper.toml``) and what orrery predicts (``predict.py``).

A paper with several files keeps them in its folder; what several papers share is in ``shared``. The texts come with
orrery itself; the Python files are the distribution ``orrery-ai-papers``, which ``orrery-ai[papers]`` requires.
"""
