"""``orrery web`` as people have it: a real server and a real browser, for all tests of this package."""
