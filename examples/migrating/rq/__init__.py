"""A brochure, made by RQ and by Outlast."""
