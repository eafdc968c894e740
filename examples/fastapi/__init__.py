"""A shop on FastAPI: an order and the work on it are committed together, where BackgroundTasks would lose the work with the process."""
