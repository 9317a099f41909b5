"""The folder of all artefacts, whose names are relative to it."""

RESULTS = "results"
