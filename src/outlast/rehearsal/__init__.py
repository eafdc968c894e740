"""An app that misbehaves on request, to rehearse faults through the public surface: `outlast.rehearsal:app`, kind `rehearsal`."""

from outlast.rehearsal.handlers import app

__all__ = ["app"]
