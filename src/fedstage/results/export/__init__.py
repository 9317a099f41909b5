"""Export: what a run has made, in the files of programs that show experiments.

Always after the fact, from metrics and tables: no training depends on such a program.
"""
