"""Pictures as an H.264 video and as an animated GIF."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.video.stream import VideoStream
from PIL import Image

from eureka_agent.rendering.pictures import Picture, Size

_CODEC = "libx264"
_OPTIONS = {"preset": "veryfast", "crf": "23", "threads": "1"}
"""On one core, as its worker has one."""
_GIF_RATE = 10
"""Pictures a second."""
_GIF_WIDTH = 640
_GIF_COLOURS = 128


class Mp4:
    """An H.264 video in an mp4 file, which browsers play while it loads."""

    def __init__(self, path: Path, size: Size, rate: int) -> None:
        """`size`: even numbers, as the codec halves the colours; `rate`: pictures a second."""
        self._container: OutputContainer = av.open(
            str(path), "w", format="mp4", options={"movflags": "+faststart"}
        )
        stream = self._container.add_stream(_CODEC, rate=rate, options=_OPTIONS)
        assert isinstance(stream, VideoStream)  # as the codec is one of videos
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        self._stream = stream

    def add(self, picture: Picture) -> None:
        """Append a picture."""
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        self._container.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Complete the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()


class Gif:
    """The first seconds of a video as an animation that runs everywhere, in fewer colours."""

    def __init__(self, size: Size, rate: int, seconds: float) -> None:
        """`size` and `rate`: those of the video's pictures."""
        scale = min(1.0, _GIF_WIDTH / size[0])
        self._size = round(size[0] * scale), round(size[1] * scale)
        self._every = max(1, round(rate / _GIF_RATE))
        self._milliseconds = round(1000 * self._every / rate)
        self._most = round(seconds * rate)
        self._seen = 0
        self._images: list[Image.Image] = []

    def add(self, picture: Picture) -> None:
        """Take a picture of the video, if it is one of the first."""
        if self._seen < self._most and self._seen % self._every == 0:
            image = Image.fromarray(picture).resize(self._size, Image.Resampling.BILINEAR)
            self._images.append(image.quantize(_GIF_COLOURS, dither=Image.Dither.NONE))
        self._seen += 1

    def content(self) -> bytes:
        """The file."""
        file = io.BytesIO()
        self._images[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=self._images[1:],
            duration=self._milliseconds,
            loop=0,
            optimize=True,
        )
        return file.getvalue()
