from __future__ import annotations

import io
import sys

import pytest

from outlast.demo.cover import HEIGHT, WIDTH, draw_cover


def test_a_cover_is_a_png_and_the_same_for_the_same_words() -> None:
    image = pytest.importorskip("PIL.Image")
    title = "Antidisestablishmentarianism in very many words that do not fit on one line of any cover"
    drawn = draw_cover(title, "and what it says")
    with image.open(io.BytesIO(drawn)) as cover:
        assert cover.format == "PNG"
        assert cover.size == (WIDTH, HEIGHT)
    assert draw_cover(title, "and what it says") == drawn


def test_without_pillow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"outlast\[demo\]"):
        draw_cover("A Title")
