"""Models as blocks of linear layers, token mixers and experts, read from a published config.json."""
