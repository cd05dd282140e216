"""Techniques that overlap a layer's collectives, one file each."""
