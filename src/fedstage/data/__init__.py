"""Data: data sets, their partition over clients, and who participates in a round."""
