"""Ways to share a picture out, one file each."""
