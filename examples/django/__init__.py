"""A shop in Django: an order and its job in one transaction, and the page below /jobs.

It starts with one command: `python -m examples.django`.
"""
