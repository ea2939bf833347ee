"""Any stream that a parser reads, written as the standard stream."""

from __future__ import annotations

from .streams import AsyncByteStream, ByteStream, atranscode, transcode
from .transcoder import Transcoder

__all__ = ["AsyncByteStream", "ByteStream", "Transcoder", "atranscode", "transcode"]
