"""What must hold of the rows of a store: rules as data, each a sentence and a pure function of what it looks at.

`outlast verify` reads the rows and asks every rule; the tests do the same after whatever they did to a store. A rule is added in the
module of what it is about, and to that module's `RULES`; one that needs more than a job's rows is SQL, in `store/programs/verify.py`.
"""
