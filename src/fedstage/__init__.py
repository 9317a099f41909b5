"""Federated-learning research as a DAG of cached stages."""

__version__ = "0.1.0"
