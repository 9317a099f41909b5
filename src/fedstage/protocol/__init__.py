"""What follows from a recipe: who takes part, in what group, in which rounds, what is shared.

Functions of settings, of which they import the types alone: the checks of settings call them, too.
What a stage imports of this room counts in its source, as settings do not.
"""
