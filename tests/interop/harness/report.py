"""One line per case for people, a count at the end, and the exit code CTest understands."""

from __future__ import annotations

import time
from typing import Callable, Optional

SKIP_EXIT_CODE = 77


class Skip(Exception):
    """Raised by a case that cannot run here; the text is the reason."""


class Report:
    """Runs cases and keeps their results. Not thread-safe."""

    def __init__(self, title: str, only: Optional[str] = None) -> None:
        self.passed = 0
        self.skipped: list[tuple[str, str]] = []
        self.failed: list[str] = []
        self._only = only
        self._title = title
        self._started = time.monotonic()
        print(f"== {title}", flush=True)

    def case(self, name: str, body: Callable[[], str]) -> None:
        """Runs one case. `body` returns a short remark, raises Skip, or raises AssertionError with the findings."""
        if self._only is not None and self._only not in name:
            return
        started = time.monotonic()
        try:
            remark = body()
        except Skip as reason:
            self.skip(name, str(reason))
            return
        except AssertionError as finding:
            self.failed.append(name)
            print(f"FAIL  {name}  ({time.monotonic() - started:.2f} s)\n{finding}", flush=True)
            return
        self.passed += 1
        print(f"ok    {name:<58} {time.monotonic() - started:6.2f} s  {remark}", flush=True)

    def skip(self, name: str, reason: str) -> None:
        """Notes a case that is not run, with its reason."""
        if self._only is not None and self._only not in name:
            return
        self.skipped.append((name, reason))
        print(f"skip  {name}: {reason}", flush=True)

    def finish(self) -> int:
        """Prints the count; 0 all well, 1 a case failed, 77 nothing could run."""
        print(f"== {self._title}: {self.passed} ok, {len(self.failed)} failed, {len(self.skipped)} skipped "
              f"in {time.monotonic() - self._started:.1f} s", flush=True)
        for name in self.failed:
            print(f"   failed: {name}", flush=True)
        if self.failed:
            return 1
        return 0 if self.passed else SKIP_EXIT_CODE
