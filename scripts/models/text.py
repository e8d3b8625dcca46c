"""Pictures of printed words, as text recognition sees them."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

WORDS = ("Paddle", "OpenVINO", "CPU", "2.6.2", "float32", "Total", "1,024", "No.", "A-37", "hello")
LINE = 48


def pages(count: int, height: int, width: int) -> NDArray[np.float32]:
    """Return seeded pictures [count, 3, height, width] in [-1, 1], a line of words every 48 rows.

    A picture depends only on its size and index: more of them begin with the same ones.
    """
    random = np.random.RandomState(0)
    return np.stack([page(random, height, width) for _ in range(count)])


def page(random: np.random.RandomState, height: int, width: int) -> NDArray[np.float32]:
    """Return one picture [3, height, width]: dark words on light, slightly noisy paper."""
    paper, ink = (tuple(random.randint(*limits, 3).tolist()) for limits in ((190, 256), (0, 80)))
    image = Image.new("RGB", (width, height), paper)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(LINE * 0.6)
    for top in range(0, height - LINE + 1, LINE):
        line = " ".join(random.choice(WORDS, 8))
        left = random.randint(4, 16)
        draw.text((left, top + LINE // 2), line, ink, font, anchor="lm")
    pixels = np.asarray(image) + random.randint(-8, 9, (height, width, 3))
    return (pixels.clip(0, 255).transpose(2, 0, 1) / 127.5 - 1).astype(np.float32)
