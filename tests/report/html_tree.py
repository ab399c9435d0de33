"""Queries of tests on the parsed HTML of a page."""

from html.parser import HTMLParser


class Tree(HTMLParser):
    """Parser that records elements with attributes, in order, and all text."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, name: str) -> list[str]:
        """Return the values of an attribute over all elements."""
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]
