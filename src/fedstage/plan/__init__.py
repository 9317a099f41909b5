"""The graph of stages: the files that they make, the inputs of each file, and its folder."""
