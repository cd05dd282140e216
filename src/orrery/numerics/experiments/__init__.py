"""Small networks that are really trained in simulated formats, and the questions they answer."""
