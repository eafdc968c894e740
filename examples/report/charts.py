"""Charts, drawn with Pillow: horizontal bars, the same for the same figures."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

WIDTH, BAR, GAP, LEFT, TOP = 900, 24, 10, 260, 60
_INK, _QUIET, _BAR = (28, 34, 48), (108, 117, 134), (38, 99, 196)


def bars(title: str, rows: Sequence[tuple[str, float]]) -> bytes:
    """A PNG with one bar for each row, the longest as wide as there is room."""
    height = TOP + len(rows) * (BAR + GAP) + GAP
    image = Image.new("RGB", (WIDTH, height), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(16)
    draw.text((GAP, 18), title, fill=_INK, font=ImageFont.load_default(22))
    most = max((value for _, value in rows), default=1) or 1
    for place, (name, value) in enumerate(rows):
        y = TOP + place * (BAR + GAP)
        draw.text((GAP, y + 3), name[:28], fill=_INK, font=font)
        length = (WIDTH - LEFT - 130) * value / most
        draw.rectangle((LEFT, y, LEFT + length, y + BAR), fill=_BAR)
        draw.text((LEFT + length + 8, y + 3), f"{value:,.0f}", fill=_QUIET, font=font)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
