"""What a model forgets about a round's participants, and learns from the next round's.

Measures of "Edge Bias in Federated Learning and its Solution by Buffered Knowledge Distillation".
"""
