"""The accuracy of a recipe's main model for each client and class, by their names."""
