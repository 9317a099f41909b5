"""When the jobs of a line's rounds would run, on clients that are not always there and a server.

A discrete-event simulation over the edges of the DAG. Nothing is trained: seconds are settings.
"""
