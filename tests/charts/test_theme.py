"""Colours that mean something are distinguishable, also by colour-blind eyes and on their paper."""

from itertools import combinations

import numpy as np
import pytest

from tracediff.charts.theme import PALETTES, readable

VISION = {
    "usual": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""What is left of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1)."""
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour, vision):
    xyz = TO_XYZ @ np.clip(VISION[vision] @ linear(colour), 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a, b):
    bright, dark = sorted((float(linear(c) @ np.array([0.2126, 0.7152, 0.0722])) for c in (a, b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def mixed(colour, end, share):
    """The colour of a box of the flame graph, ``share`` of the way to ``end``."""
    ends = ([int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in (colour, end))
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in zip(*ends, strict=True))


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("vision", VISION)
def test_meanings_differ_for_all_eyes(theme, vision):
    palette = PALETTES[theme]
    meanings = {"control": palette.control, "test": palette.test, "faster": palette.faster, "slower": palette.slower}
    for (a, colour), (b, other_colour) in combinations(meanings.items(), 2):
        assert np.linalg.norm(lab(colour, vision) - lab(other_colour, vision)) > 20, (a, b)


@pytest.mark.parametrize("theme", PALETTES)
def test_text_and_marks_stand_out_from_the_paper(theme):
    palette = PALETTES[theme]
    assert contrast(palette.text, palette.paper) > 7
    assert contrast(palette.muted, palette.paper) > 4.5
    for colour in (palette.test, palette.faster, palette.slower, palette.neutral):  # changes are also written in them
        assert contrast(colour, palette.paper) > 4.5
    assert contrast(palette.control, palette.paper) > 1.9
    boxes = [mixed(palette.middle, end, k / 50) for end in (palette.faster, palette.slower) for k in range(51)]
    for background in (*boxes, *palette.parts, palette.quiet):  # names are written in them
        assert contrast(readable(background), background) > 4.5
