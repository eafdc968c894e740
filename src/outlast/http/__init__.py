"""The HTTP side: API, events, page and component as one ASGI application that any host can mount. Needs the extra `web`."""
