"""Signals that end a command, as exceptions: so that no part of an output and no process is left over."""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, NoReturn

__all__ = ["Ended", "endings_raised"]


class Ended(BaseException):
    """The command was told to end, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def endings_raised() -> Generator[None]:
    """Has SIGTERM and SIGHUP raise Ended, as SIGINT raises KeyboardInterrupt; not where they are ignored (``nohup``) or
    handled by somebody else, nor in another thread than the main one."""
    before: dict[Any, Any] = {}
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                with contextlib.suppress(ValueError):
                    before[number] = signal.signal(number, _end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: object) -> NoReturn:
    raise Ended(number)
