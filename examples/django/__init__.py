"""A shop in Django: an order and its job in one transaction, the page below /jobs, and tasks of Django's own framework.

It starts with one command: `python -m examples.django`.
"""
