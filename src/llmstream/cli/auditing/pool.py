"""Work shared out to processes, results in the order of the files; in flight there is only so much."""

from __future__ import annotations

from collections import deque
from itertools import islice

from ..options import Unusable
from .inputs import size_of
from .work import Job, Result, Worker, keep_freed_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Executor, Future
    from typing import TypeAlias

    Window: TypeAlias = deque[tuple[Future[Result], list[str]]]

__all__ = ["Result", "read_all"]

TASK_SIZE = 16 * 2**20
TASK_FILES = 512
"""A task is a file, or several until they have so many bytes or are so many."""


def read_all(paths: Iterable[str], job: Job, jobs: int) -> Iterator[Result]:
    """The records of all files, in their order. Raises Unusable where a process dies."""
    keep_freed_memory()
    tasks = _tasks(paths)
    first = list(islice(tasks, 2))
    if jobs == 1 or len(first) < 2:
        worker = Worker(job)
        for group in (*first, *tasks):
            yield from _alone(worker, group)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Not forked: other threads of this process may hold locks.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (job,))
    try:
        window: Window = deque()
        for group in (*first, *tasks):
            window.append((pool.submit(_work, group), group))
            if len(window) > 2 * jobs:
                yield _next(pool, window)
        while window:
            yield _next(pool, window)
    except BrokenProcessPool:
        raise Unusable("a process that was reading has died: is there enough memory?") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _alone(worker: Worker, group: list[str]) -> Iterator[Result]:
    while group:
        result = worker.work(group)
        yield result
        group = group[result.count :]


def _next(pool: Executor, window: Window) -> Result:
    future, group = window.popleft()
    result = future.result()
    rest = group[result.count :]
    if rest:
        window.appendleft((pool.submit(_work, rest), rest))
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


# --------------------------------------------------------------------------------------------------
# In the process

_workers: list[Worker] = []
"""One: what a process has instead of a closure."""


def _begin(job: Job) -> None:
    from signal import SIG_DFL, SIGINT, signal

    signal(SIGINT, SIG_DFL)  # an interrupted command says nothing
    keep_freed_memory()
    _workers[:] = [Worker(job)]


def _work(group: list[str]) -> Result:
    return _workers[0].work(group)
