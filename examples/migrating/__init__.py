"""The same work before and after: on Celery, RQ and BackgroundTasks, and on Outlast. docs/migrating/ walks through it."""
