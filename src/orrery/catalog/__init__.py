"""Named devices, models, engines, prices and calibrations, each with its source."""
