"""The server's step of a round: from the updates of a group to its next model w_{t,k}."""
