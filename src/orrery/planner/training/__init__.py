"""The best layout to train with: every one that makes sense, costed, and why the others fall out."""
