"""Faster, spec-right streams in the OpenAI SDK for Python, version 2 or 3 (extra ``openai``).

Events are decoded by ``llmstream.SSEDecoder``, and chunks that differ from the ones before in their text only are built
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

_CHUNK = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"f",'
    b'"choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}],"obfuscation":"%s"}\n\n'
)
_acceleration = Acceleration(
    "openai",
    majors=(2, 3),
    texts=(
        ("openai.types.chat", "ChatCompletionChunk"),
        ("openai.types", "Completion"),
        ("openai.types.responses", "ResponseStreamEvent"),
    ),
    sample=(
        _CHUNK % (b'"role":"assistant","content":""', b"null", b"a"),
        _CHUNK % (b'"content":"one"', b"null", b"bc"),
        _CHUNK % (b'"content":"\\n\\"two\\""', b"null", b""),
        _CHUNK % (b'"content":"\xe2\x82\xac \\ud83d\\ude00"', b"null", b"def"),
        _CHUNK % (b"", b'"stop"', b"g"),
    ),
)


def accelerate(client: Client) -> Client:
    """Accelerates the streams that this client opens from now on, and returns the client.

    ``client``  a client of the SDK: an ``OpenAI``, ``AsyncOpenAI``, ``AzureOpenAI`` ...; a copy that ``with_options``
                or ``copy.copy`` makes of it is another one. Others raise TypeError, and ModuleNotFoundError is raised
                where the SDK is not installed.

    A client that is accelerated already, and one whose class decodes streams in a way of its own, are left as they are.
    """
    _acceleration.accelerate(client)
    return client


def restore(client: Client) -> Client:
    """Takes back what ``accelerate`` did to this client, and returns the client. Streams under way are not affected."""
    _acceleration.restore(client)
    return client


def install() -> None:
    """Accelerates the streams of all clients, also of those that libraries make. Calling it twice does no more.

    Raises ModuleNotFoundError where the SDK is not installed.
    """
    _acceleration.install()


def uninstall() -> None:
    """Takes back what ``install`` did: the SDK's own functions, the very same objects, are in their places again."""
    _acceleration.uninstall()
