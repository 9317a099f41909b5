"""Models: one file an architecture, their initialisation, and their size.

Nothing is imported here, so that the workflow can ask `fedstage.models.size` without torch.
"""
