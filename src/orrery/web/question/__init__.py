"""The question that the first page asks: what can be chosen, and what is sent on."""
