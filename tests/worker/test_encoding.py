"""Videos and GIFs as another program reads them."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from eureka_agent.simulation.pictures import Picture
from eureka_agent.worker.film import Gif, Mp4

COLOURS = ((200, 30, 30), (30, 160, 60), (40, 60, 190))


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (96, 64)) -> Picture:
    return np.full((size[1], size[0], 3), colour, dtype=np.uint8)


def test_a_video_holds_every_picture_at_its_time(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    video = Mp4(path, 30)
    for colour in COLOURS:
        for _ in range(10):
            video.add(plain(colour))
    video.close()
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"  # the one that every browser plays
        assert stream.average_rate == 30
        frames = list(container.decode(video=0))
    assert len(frames) == 30
    assert frames[15].time == pytest.approx(0.5)
    for place, colour in ((5, COLOURS[0]), (15, COLOURS[1]), (25, COLOURS[2])):
        mean = frames[place].to_ndarray(format="rgb24").mean(axis=(0, 1))
        assert mean == pytest.approx(colour, abs=6)


def test_a_browser_can_begin_before_the_video_has_come(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    video = Mp4(path, 30)
    for _ in range(5):
        video.add(plain(COLOURS[0]))
    video.close()
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")


def test_a_gif_is_the_beginning_at_ten_pictures_a_second() -> None:
    gif = Gif(30, 2.0)
    for number in range(90):  # 3 s, of which 2 are taken
        gif.add(plain((2 * number, 0, 0), (1280, 64)))
    with Image.open(io.BytesIO(gif.content())) as image:
        assert image.size == (640, 32)
        assert image.n_frames == 20
        shades = []
        for number in range(20):
            image.seek(number)
            assert image.info["duration"] == 100
            shades.append(image.convert("RGB").getpixel((5, 5))[0])
    # every third picture, each 2 brighter than the one before it
    assert shades == pytest.approx([6 * number for number in range(20)], abs=2)
