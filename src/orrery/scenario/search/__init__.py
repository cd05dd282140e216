"""``orrery search``: networks out of a space, for devices, with what is known of their quality."""
