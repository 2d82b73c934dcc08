"""A process whose event loop hangs ends, and one whose loop is only busy does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from deployments.loop_watch import LoopWatch

HANGING = """
import asyncio, sys, time
from deployments.loop_watch import LoopWatch

async def main():
    LoopWatch(hang_s=0.2, period_s=0.02).start()
    {act}

asyncio.run(main())
"""


@pytest.mark.parametrize("act", ["time.sleep(600)", "while True: pass"])
def test_a_process_whose_loop_hangs_ends_and_says_where(act: str) -> None:
    done = subprocess.run([sys.executable, "-c", HANGING.format(act=act)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert 'File "<string>", line 7 in main' in done.stderr


async def test_a_loop_that_answers_goes_on() -> None:
    ended = threading.Event()
    watch = LoopWatch(hang_s=0.1, period_s=0.01, end=ended.set)
    watch.start()
    for _ in range(30):
        await asyncio.sleep(0.01)
    watch.stop()
    assert not ended.is_set()
