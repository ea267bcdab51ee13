"""SVG files made fit to stand inside an HTML page, many on one page."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

from jaxemb.errors import InputError

# Left out: what could run, load something, or style the page around the figure.
_DROPPED = {"script", "style", "foreignObject", "metadata", "iframe", "image"}


def inline(text: str, prefix: str, colours: Mapping[str, str] | None = None) -> str:
    """An SVG document as an `<svg>` element for the body of an HTML page.

    Args:
      text: the document.
      prefix: put before every id, so that two figures on a page do not share one.
      colours: hexadecimal colours of `style` attributes to what replaces them, such
        as `var(--ink)`.

    Raises:
      InputError: where the text is not SVG.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"not a readable SVG figure ({error})") from error
    if _local(root.tag) != "svg":
        raise InputError(f"expected an SVG figure, found <{_local(root.tag)}>")
    _clean(root, prefix, colours or {})
    if "viewBox" not in root.attrib and {"width", "height"} <= set(root.attrib):
        size = [re.sub(r"[a-z%]+$", "", root.attrib[n]) for n in ("width", "height")]
        root.set("viewBox", f"0 0 {size[0]} {size[1]}")
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    # What matplotlib says in a style sheet, which would reach the whole page.
    root.set("style", "stroke-linejoin:round;stroke-linecap:butt")
    root.set("role", "img")
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def _clean(node: ElementTree.Element, prefix: str, colours: Mapping[str, str]) -> None:
    node.tag = _local(node.tag)
    attributes = {}
    for name, value in node.attrib.items():
        name = _local(name)
        if name.lower().startswith("on"):
            continue
        if name == "id":
            value = prefix + value
        elif name == "href":
            if not value.startswith("#"):  # the page asks nothing of the network
                continue
            value = "#" + prefix + value[1:]
        elif "url(" in value:
            value = _local_urls(value, prefix)
        if name == "style":
            value = _restyle(value, colours)
        attributes[name] = value
    node.attrib.clear()
    node.attrib.update(attributes)
    for child in list(node):
        # Comments and processing instructions have a function for a tag.
        if not isinstance(child.tag, str) or _local(child.tag) in _DROPPED:
            node.remove(child)
        else:
            _clean(child, prefix, colours)


def _local_urls(value: str, prefix: str) -> str:
    return re.sub(
        r"url\(\s*[\"']?(#?)([^)\"']*)[\"']?\s*\)",
        lambda match: f"url(#{prefix}{match[2]})" if match[1] else "none",
        value,
    )


def _restyle(value: str, colours: Mapping[str, str]) -> str:
    return re.sub(
        r"#[0-9a-fA-F]{6}\b",
        lambda match: colours.get(match[0].lower(), match[0]),
        value,
    )


def _local(name: str) -> str:
    return name.rsplit("}", 1)[-1]
