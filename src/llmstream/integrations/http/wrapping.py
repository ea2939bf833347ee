"""Transports around another: what only has to be handed on to it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["AsyncWrapping", "Wrapping"]


class Wrapping:
    """Opens and closes with the transport that it is around."""

    _transport: Any

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(self, *fault: object) -> None:
        self._transport.__exit__(*fault)


class AsyncWrapping:
    """As ``Wrapping``, asynchronous."""

    _transport: Any

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self._transport.__aexit__(*fault)
