"""A queue policy and a router, offered to orrery from outside."""
