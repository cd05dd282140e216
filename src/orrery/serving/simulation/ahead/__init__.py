"""Steps of one batch that are priced before anything else can happen to it."""
