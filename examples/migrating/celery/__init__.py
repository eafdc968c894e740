"""A brochure, made by Celery and by Outlast."""
