"""Simulated schedules of a recipe's rounds, on a server and clients that are not always available.

A discrete-event simulation over the edges of the DAG, without training: seconds are settings.
"""
