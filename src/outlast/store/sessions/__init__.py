"""The host application's own sessions and connections: how a program of ours runs on one, and whose transaction it is.

Ours, on a session of the host's (`ctx.commit`, attach): `transaction` is the flow, `sides` what is asked of a session, `drivers` and
`sqlalchemy` speak to it, `opening` chooses, `marks` tells one transaction from the next.

The caller's (`submit(transaction=...)`): `calling` runs programs in it, `callers` is what is asked of the object, `driver_callers`,
`sqlalchemy_callers` and `django` speak to it.
"""
