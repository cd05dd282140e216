"""``orrery web`` as people have it: a real server, a real browser. A package, so that both live as long as its tests."""
