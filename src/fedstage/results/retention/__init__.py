"""What a model forgets of the participants of the round before, and learns from those of its own.

Measures of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".
"""
