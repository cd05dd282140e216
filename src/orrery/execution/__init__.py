"""One step of a model cut over many devices: its ops, its collectives, its memory."""
