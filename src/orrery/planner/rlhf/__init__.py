"""RLHF: six calls of four models, each on its own mesh with its own layout; parameters move between them. [mei-2024]"""
