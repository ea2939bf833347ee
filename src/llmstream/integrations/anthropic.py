"""Faster, spec-right streams in the Anthropic SDK for Python, version 2 (extra ``anthropic``).

Events are decoded by ``llmstream.SSEDecoder``, and deltas that differ from the ones before in their text only are built
from a template; everything else is left to the SDK. What its users see stays the same: classes, fields, order, ``==``,
``model_dump``, copies and pickles. What changes is what WHATWG HTML, section 9.2, wants otherwise than the SDK reads: a
byte order mark, comments after an ``id``, events without data, bytes that are no UTF-8.

Nothing is replaced before one of these functions is called, and only where a test stream gives the same objects both
ways. Where there is a doubt, a RuntimeWarning says so once, and the SDK does its own work.
"""

from __future__ import annotations

from .sdk.acceleration import Acceleration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Client = TypeVar("Client")

__all__ = ["accelerate", "install", "restore", "uninstall"]

_DELTA = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"%s"}}\n\n'
)
_START = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
_acceleration = Acceleration(
    "anthropic",
    majors=(2,),
    texts=(
        ("anthropic.types", "RawMessageStreamEvent"),
        ("anthropic.types.beta", "BetaRawMessageStreamEvent"),
    ),
    sample=(
        _START,
        _DELTA % b"one",
        _DELTA % b'\\n\\"two\\"',
        _DELTA % b"\xe2\x82\xac \\ud83d\\ude00",
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    ),
)


def accelerate(client: Client) -> Client:
    """Accelerates the streams that this client opens from now on, and returns the client.

    ``client``  a client of the SDK: an ``Anthropic``, ``AsyncAnthropic``, ``AnthropicVertex`` ...; a copy that
                ``with_options`` or ``copy.copy`` makes of it is another one. Others raise TypeError, and
                ModuleNotFoundError is raised where the SDK is not installed.

    A client that is accelerated already, and one whose class decodes streams in a way of its own (``AnthropicBedrock``
    reads the AWS event stream), are left as they are.
    """
    _acceleration.accelerate(client)
    return client


def restore(client: Client) -> Client:
    """Takes back what ``accelerate`` did to this client, and returns the client. Streams under way are not affected."""
    _acceleration.restore(client)
    return client


def install() -> None:
    """Accelerates the streams of all clients, also of those that libraries make. Calling it twice does no more.

    Clients whose class decodes streams in a way of its own (``AnthropicBedrock``) are left as they are. Raises
    ModuleNotFoundError where the SDK is not installed.
    """
    _acceleration.install()


def uninstall() -> None:
    """Takes back what ``install`` did: the SDK's own functions, the very same objects, are in their places again."""
    _acceleration.uninstall()
