"""Export: the results of a run, in the formats of programs that show experiments.

Exports are made afterwards, from metrics and tables: no training depends on such a program.
"""
