"""What an engine core counts is read by its replica, in another process or not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from model_service.core_figures import CoreFigures, FiguresPage, FiguresWriter
from model_service.errors import MemoryUnavailable

SOME = CoreFigures(steps=10, step_us=50_000, mask_us=2_000, masked_steps=8, mask_rows=30, distinct_mask_rows=12, grammars_resident=3)


def test_a_fresh_page_says_nothing() -> None:
    page = FiguresPage()
    assert page.read() == CoreFigures()
    page.close()


def test_what_another_process_writes_is_read() -> None:
    page = FiguresPage()
    writing = f"from model_service.core_figures import *; FiguresWriter({page.address!r}).write(CoreFigures(steps=7, grammars_resident=2))"
    subprocess.run([sys.executable, "-c", writing], check=True)
    assert page.read() == CoreFigures(steps=7, grammars_resident=2)
    page.close()


def test_a_writer_keeps_the_page_that_its_reader_has_closed() -> None:
    page = FiguresPage()
    writer = FiguresWriter(page.address)
    page.close()
    writer.write(SOME)
    FiguresWriter().write(SOME)


def test_a_page_that_is_gone_cannot_be_written() -> None:
    page = FiguresPage()
    page.close()
    with pytest.raises(MemoryUnavailable, match=page.address.name):
        FiguresWriter(page.address)


def test_times_are_means_of_the_steps_since() -> None:
    assert SOME.step_ms(CoreFigures()) == pytest.approx(5.0)
    assert SOME.step_ms(CoreFigures(steps=8, step_us=10_000)) == pytest.approx(20.0)
    assert SOME.step_ms(SOME) == 0.0
