"""The graph of stages: which files there are, what each is made from, and in which folder."""
