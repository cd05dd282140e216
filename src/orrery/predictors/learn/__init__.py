"""A small kit for learning: perceptrons, their training by autograd, and scores of what they predict."""
