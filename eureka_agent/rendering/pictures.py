"""Pictures as arrays, and the fonts for them."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import ImageFont

from eureka_agent.errors import EurekaError

Picture: TypeAlias = NDArray[np.uint8]
"""Shape: (height, width, 3), red, green and blue."""
Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""


class RenderingError(EurekaError):
    """A picture that cannot be made: an environment without one, or missing libraries."""


@cache
def font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font: the same on every machine."""
    found = ImageFont.load_default(pixels)
    assert isinstance(found, ImageFont.FreeTypeFont)  # wheels of Pillow have FreeType
    return found
