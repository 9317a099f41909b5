"""The folder of all artefacts, whose names are relative to it."""

RESULTS = "results"
#: The folder of links to runs by method and seed.
BY_METHOD = f"{RESULTS}/by_method"
