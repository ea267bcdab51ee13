import xml.etree.ElementTree as ElementTree

import pytest

from jaxemb.analysis import svg
from jaxemb.errors import InputError

FIGURE = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://example.org/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
     width="72pt" height="36pt" version="1.1" onload="alert(1)">
 <metadata>who</metadata><!-- a comment -->
 <defs><style>*{stroke: red}</style><path id="a" d="M0 0"/>
  <clipPath id="clip"><rect width="1"/></clipPath></defs>
 <use xlink:href="#a" clip-path="url(#clip)" style="fill: #24292F; stroke: #0072b2"/>
 <use href="https://example.org/x.svg#a" style="fill: url('https://example.org/y')"/>
 <script>alert(1)</script><image href="https://example.org/z.png"/>
 <foreignObject><iframe src="https://example.org"/></foreignObject>
 <text onclick="alert(1)">a &lt; b &amp; c</text>
</svg>"""


def test_ids_are_prefixed_and_still_found():
    root = ElementTree.fromstring(svg.inline(FIGURE, "r1-"))
    ids = {node.get("id") for node in root.iter() if node.get("id")}
    assert ids == {"r1-a", "r1-clip"}
    use = next(root.iter("use"))
    assert use.get("href") == "#r1-a"
    assert use.get("clip-path") == "url(#r1-clip)"


def test_nothing_that_runs_loads_or_restyles_the_page_is_left():
    text = svg.inline(FIGURE, "x-")
    for gone in ("example.org", "alert", "<style", "script", "image", "who", "comment"):
        assert gone not in text
    assert "onload" not in text and "onclick" not in text
    assert "a &lt; b &amp; c" in text
    assert text.startswith("<svg ") and "xmlns" not in text


def test_size_becomes_a_view_box_and_colours_are_replaced():
    colours = {"#24292f": "var(--ink)"}
    root = ElementTree.fromstring(svg.inline(FIGURE, "x-", colours))
    assert root.get("viewBox") == "0 0 72 36" and root.get("width") is None
    assert next(root.iter("use")).get("style") == "fill: var(--ink); stroke: #0072b2"


@pytest.mark.parametrize("text", ["", "not xml", "<html/>", "<svg>"])
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(InputError, match="SVG figure"):
        svg.inline(text, "x-")
