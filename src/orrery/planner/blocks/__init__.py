"""A cheaper block for every layer of a model: least damage within limits on parameters, memory and time."""
