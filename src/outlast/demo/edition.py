"""What a book says of itself, apart from its text."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edition:
    """The title page of a book. The language is that of the topics, which is English."""

    title: str = "Python in Its Own Words"
    subtitle: str = "The language reference, bound as a book"
    creator: str = "The Python Documentation Authors"
    rights: str = "Text © Python Software Foundation, distributed under the PSF License Version 2."

    @property
    def identifier(self) -> str:
        """The same URN for every build of the same title, as EPUB asks for revisions of one publication."""
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{self.creator}/{self.title}/{self.subtitle}").urn
