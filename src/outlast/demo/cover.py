"""The cover of the book, drawn rather than shipped."""

from __future__ import annotations

import io
import math
import random
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    _Font: TypeAlias = FreeTypeFont | ImageFont

_Colour: TypeAlias = tuple[int, int, int]

WIDTH, HEIGHT = 1200, 1800

_TOP: _Colour = (22, 42, 66)
_BOTTOM: _Colour = (38, 84, 124)
_INK: _Colour = (246, 243, 234)
_QUIET: _Colour = (168, 194, 217)
_ACCENT: _Colour = (255, 212, 59)
_MARGIN, _TITLE_TOP = 110, 220
_ROOM = WIDTH - 2 * _MARGIN
_MOST_LINES = 4
_LIT = 0.16
_CENTRE = (WIDTH - 190, HEIGHT - 210)


def draw_cover(title: str, subtitle: str = "") -> bytes:
    """A PNG, 1200 by 1800: the same for the same words and the same Pillow.

    ImportError, with what to install, if Pillow is missing.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError("Drawing a cover needs Pillow: install outlast[demo].") from error
    # The rings are drawn twice as large and shrunk, which smooths them: Pillow draws its lines with jagged edges.
    large = Image.new("RGB", (WIDTH * 2, HEIGHT * 2))
    canvas = ImageDraw.Draw(large)
    for y in range(HEIGHT * 2):
        canvas.line([(0, y), (WIDTH * 2, y)], fill=_mixed(_TOP, _BOTTOM, y / HEIGHT / 2))
    lines, size = _fitted(canvas, title, size=150, least=60)
    under, small = _fitted(canvas, subtitle, size=54, least=30)
    rule = _TITLE_TOP + _height(lines, size) + 46
    end = rule + 64 + _height(under, small)
    _draw_rings(canvas, seed=title, room=_CENTRE[1] - end - 40)
    image = large.reduce(2)
    canvas = ImageDraw.Draw(image)
    _draw_lines(canvas, lines, top=_TITLE_TOP, size=size, fill=_INK)
    canvas.rectangle([_MARGIN, rule, _MARGIN + 180, rule + 10], fill=_ACCENT)
    _draw_lines(canvas, under, top=rule + 64, size=small, fill=_QUIET)
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _draw_rings(canvas: ImageDraw, *, seed: str, room: float) -> None:
    """Growth rings of a tree in the lower right, a few of them lit, on a canvas of twice the size.

    `room` is the largest radius.
    """
    # Seeded by the title: every book its own rings, every run the same. PYTHONHASHSEED does not touch a str seed.
    dice = random.Random(seed)
    radius, phase = 46.0, dice.uniform(0, math.tau)
    while radius < room:
        is_lit = dice.random() < _LIT
        width = dice.choice((3, 5, 6)) + (6 if is_lit else 0)
        # Uneven, yet each like the one within, or they would cross.
        wave = min(radius * 0.08, 10)
        phase += dice.uniform(-0.3, 0.3)
        points: list[tuple[float, float]] = []
        for step in range(361):
            angle = step * math.tau / 360
            reach = radius + wave * math.sin(3 * angle + phase)
            points.append((2 * (_CENTRE[0] + reach * math.cos(angle)), 2 * (_CENTRE[1] + reach * math.sin(angle))))
        shade = _ACCENT if is_lit else _mixed(_BOTTOM, _QUIET, 0.5 - 0.35 * radius / HEIGHT)
        canvas.line(points, fill=shade, width=width, joint="curve")
        radius += dice.uniform(18, 44)


def _mixed(one: _Colour, other: _Colour, share: float) -> _Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return (red, green, blue)


def _fitted(canvas: ImageDraw, words: str, *, size: int, least: int) -> tuple[list[str], int]:
    """The words in lines of about one length, in the largest size in which they fit."""
    while True:
        font = _font(size)
        lines = _wrapped(canvas, words, font, _ROOM)
        fits = len(lines) <= _MOST_LINES and all(canvas.textlength(line, font=font) <= _ROOM for line in lines)
        if fits or size <= least:
            break
        size -= 6
    # As narrow as goes without a further line, so that no word stands alone on the last one.
    narrower = (_wrapped(canvas, words, font, width) for width in range(_ROOM // 2, _ROOM, 20))
    return next((even for even in narrower if len(even) == len(lines)), lines), size


def _wrapped(canvas: ImageDraw, words: str, font: _Font, width: int) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and canvas.textlength(longer, font=font) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _height(lines: list[str], size: int) -> int:
    return len(lines) * round(size * 1.16)


def _draw_lines(canvas: ImageDraw, lines: list[str], *, top: int, size: int, fill: _Colour) -> None:
    for place, line in enumerate(lines):
        canvas.text((_MARGIN, top + _height(lines[:place], size)), line, font=_font(size), fill=fill)


def _font(size: int) -> _Font:
    """Pillow's own font, which is the same on every machine, unlike those installed."""
    from PIL import ImageFont

    return ImageFont.load_default(size)
