"""A report with charts, from the data files of a package, attached to a document that people edit and mailed once."""
