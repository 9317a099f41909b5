"""Claims of papers as data, and tests of whether measurements support them."""
