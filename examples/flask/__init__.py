"""A shop on Flask: an order and the work on it are committed together."""
