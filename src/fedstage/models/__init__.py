"""Models: architectures, initial weights, sizes and quantisation.

Nothing is imported here, so that the workflow can use `fedstage.models.size` without torch.
"""
