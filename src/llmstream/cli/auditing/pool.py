"""Work shared out to processes, results in the order of the files; in flight there is only so much."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from itertools import islice

from ..options import Unusable
from .inputs import size_of
from .work import Job, Result, Worker, keep_freed_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from typing import Any, TypeAlias

    Window: TypeAlias = deque[tuple[Future[Result], list[str]]]

__all__ = ["ENDINGS", "Result", "read_all"]

TASK_SIZE = 16 * 2**20
TASK_FILES = 512
"""A task is a file, or several until they have so many bytes or are so many."""

ENDINGS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end the command: they reach its processes too where a terminal or a supervisor sends them to all."""


def read_all(paths: Iterable[str], job: Job, jobs: int) -> Generator[Result]:
    """The records of all files, in their order. Raises Unusable where a process dies. No process is left when this
    ends, is closed or is interrupted."""
    keep_freed_memory()
    tasks = _tasks(paths)
    first = list(islice(tasks, 2))
    if jobs == 1 or len(first) < 2:
        worker = Worker(job)
        for group in (*first, *tasks):
            yield from _alone(worker, group)
        return
    pool = _Pool(job, jobs)
    try:
        window: Window = deque()
        for group in (*first, *tasks):
            window.append((pool.submit(group), group))
            if len(window) > 2 * jobs:
                yield _next(pool, window)
        while window:
            yield _next(pool, window)
        pool.close()
    except BaseException:
        pool.kill()
        raise


def _alone(worker: Worker, group: list[str]) -> Iterator[Result]:
    while group:
        result = worker.work(group)
        yield result
        group = group[result.count :]


def _next(pool: _Pool, window: Window) -> Result:
    future, group = window.popleft()
    result = future.result()
    rest = group[result.count :]
    if rest:
        window.appendleft((pool.submit(rest), rest))
    return result


def _tasks(paths: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for path in paths:
        group.append(path)
        size += size_of(path)
        if size >= TASK_SIZE or len(group) >= TASK_FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Pool:
    """Processes that may die at any moment, in the middle of a result too: each has a pipe of its own, whose other end
    nobody else holds, so that a thread that waits for a result learns of it (a ``ProcessPoolExecutor`` waits for ever).
    """

    def __init__(self, job: Job, jobs: int) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from multiprocessing import get_context
        from queue import SimpleQueue

        self._job = job
        self._jobs = jobs
        self._context = get_context("spawn")  # not forked: other threads of this process may hold locks
        self._processes: list[Any] = []
        self._idle: SimpleQueue[Any] = SimpleQueue()
        self._threads = ThreadPoolExecutor(jobs)

    def submit(self, group: list[str]) -> Future[Result]:
        """Has one of the processes work on files."""
        with _undisturbed():
            if len(self._processes) < self._jobs:
                self._start()
            return self._threads.submit(self._ask, group)

    def _start(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._job))
        process.start()
        theirs.close()
        self._processes.append(process)
        self._idle.put(ours)

    def _ask(self, group: list[str]) -> Result:
        pipe = self._idle.get()
        try:
            pipe.send(group)
            found: Result | Unusable = pipe.recv()
        except (EOFError, OSError):
            raise Unusable("a process that was reading has died: is there enough memory?") from None
        finally:
            self._idle.put(pipe)
        if isinstance(found, Unusable):
            raise found
        return found

    def close(self) -> None:
        """Lets the processes end, where all work is done."""
        self._threads.shutdown()
        for _ in self._processes:
            self._idle.get().close()
        for process in self._processes:
            process.join()

    def kill(self) -> None:
        """Ends them, wherever they stand."""
        for process in self._processes:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.join()


@contextlib.contextmanager
def _undisturbed() -> Generator[None]:
    """Holds back signals that end the command, in what is started meanwhile as well: a process that is not known yet
    would be left over, one that has not begun would tell of the interrupt, and a thread would take it for this one."""
    if os.name != "posix" or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # else it is started on the way, which lets signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --------------------------------------------------------------------------------------------------
# In the process


def _serve(pipe: Connection[Any, Any], job: Job) -> None:
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command itself ends its processes
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    Thread(target=_end_with_parent, daemon=True).start()
    keep_freed_memory()
    worker: Worker | None = None
    with contextlib.suppress(EOFError, OSError):  # the command needs no more
        while True:
            group = pipe.recv()
            found: Result | Unusable
            try:
                worker = worker or Worker(job)
                found = worker.work(group)
            except Unusable as error:
                found = error
            except Exception as error:  # noqa: BLE001 (told by the command)
                found = Unusable(f"a process that was reading has failed: {type(error).__name__}")
            pipe.send(found)


def _end_with_parent() -> None:
    """A command that is killed tells its processes nothing."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
