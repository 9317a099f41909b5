"""Result tables: reading the metrics of runs, averaging over seeds, and writing tables."""
