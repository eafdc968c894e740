"""What the shops on FastAPI and on Flask share: their page, and a worker beside the server."""
