"""Reads pages and sends their forms, as a browser without scripts does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urlsplit

from web.site import ANN, Answer, Site

FORM: Final = "application/x-www-form-urlencoded"
_INLINE: Final = frozenset({"a", "bdi", "code", "span", "strong", "time"})
_VOID: Final = frozenset({"meta", "link", "input", "br", "img", "hr"})


@dataclass(slots=True)
class Node:
    """An element with what stands in it."""

    tag: str
    attrs: dict[str, str]
    children: list[Node | str] = field(default_factory=list["Node | str"])

    def all(self, tag: str = "", **attrs: str) -> Iterator[Node]:
        """Every element below of this tag and with these attributes, in order; `class_` and `data_x` stand for class and data-x."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attrs.items()}
        for child in self.children:
            if isinstance(child, Node):
                if tag in ("", child.tag) and all(child.attrs.get(name) == value for name, value in wanted.items()):
                    yield child
                yield from child.all(tag, **attrs)

    def one(self, tag: str = "", **attrs: str) -> Node:
        """The only such element."""
        (found,) = self.all(tag, **attrs)
        return found

    def has(self, tag: str = "", **attrs: str) -> bool:
        """Whether there is any."""
        return next(self.all(tag, **attrs), None) is not None

    @property
    def text(self) -> str:
        """Its words, with single blanks between."""
        return " ".join("".join(self._texts(apart=" ")).split())

    @property
    def raw(self) -> str:
        """Its text as it stands."""
        return "".join(self._texts())

    def _texts(self, *, apart: str = "") -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield "" if child.tag in _INLINE else apart
                yield from child._texts(apart=apart)
                yield "" if child.tag in _INLINE else apart


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice: {tag} {attrs}"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> where <{self._open[-1].tag}> is open"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    @property
    def whole(self) -> bool:
        return self._open == [self.root]


def read(answer: Answer) -> Node:
    """The page, which is well formed and has each id once, one heading and one main part."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8", answer
    builder = _Builder()
    builder.feed(answer.body.decode())
    builder.close()
    assert builder.whole, "an element is not closed"
    ids = [node.attrs["id"] for node in builder.root.all() if "id" in node.attrs]
    assert len(ids) == len({*ids}), sorted(name for name in ids if ids.count(name) > 1)
    page = builder.root
    assert page.one("main").one("h1").text
    assert page.one("title").text
    _check_references(page, {*ids})
    return page


def _check_references(page: Node, ids: set[str]) -> None:
    """What points to something by its id finds it."""
    for node in page.all():
        for name in ("for", "aria-labelledby", "aria-describedby"):
            assert {*node.attrs.get(name, "").split()} <= ids, f"{name}={node.attrs[name]!r} on {node.tag}"


@dataclass(slots=True)
class Visitor:
    """Somebody with a browser: keeps cookies, and signs in by header unless `who` is None."""

    site: Site
    who: str | None = ANN
    root: str = ""
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    scheme: str = "http"

    async def get(self, path: str, *, status: int = 200) -> Node:
        """A page."""
        answer = await self.fetch("GET", path)
        assert answer.status == status, answer
        return read(answer)

    async def send(self, page: Node, form: Node | str, /, **changes: str | None) -> Answer:
        """Sends a form of a page as it stands, but for these fields (None: without it)."""
        node = page.one("form", id=form) if isinstance(form, str) else form
        assert node.attrs["method"] == "post"
        fields = _fields(node) | {name: value for name, value in changes.items() if value is not None}
        for name, value in changes.items():
            if value is None:
                fields.pop(name, None)
        action = node.attrs["action"]
        assert action.startswith(f"{self.root}/"), action
        return await self.post(action.removeprefix(self.root), fields)

    async def post(self, path: str, fields: Mapping[str, str] | list[tuple[str, str]]) -> Answer:
        """Sends fields."""
        return await self.fetch("POST", path, body=urlencode(fields).encode(), content_type=FORM)

    async def follow(self, answer: Answer) -> Node:
        """The page to which a form's answer leads."""
        assert answer.status == 303, answer
        location = answer.headers["location"]
        assert location.startswith(f"{self.root}/"), location
        return await self.get(location.removeprefix(self.root))

    async def fetch(self, method: str, path: str, *, body: bytes | None = None, content_type: str = "") -> Answer:
        """Any request of theirs."""
        headers = {"Accept": "text/html,application/xhtml+xml"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if content_type:
            headers["Content-Type"] = content_type
        answer = await self.site.call(method, path, self.who, body=body, headers=headers, root=self.root)
        if "set-cookie" in answer.headers:
            self._keep(answer.headers["set-cookie"])
        return answer

    def _keep(self, said: str) -> None:
        pair, *attributes = said.split("; ")
        name, _, value = pair.partition("=")
        assert {"HttpOnly", "SameSite=Strict", f"Path={self.root or '/'}"} <= {*attributes}, said
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value


def _fields(form: Node) -> dict[str, str]:
    found = {
        node.attrs["name"]: node.attrs.get("value", "")
        for node in form.all("input")
        if node.attrs.get("type") != "checkbox" or "checked" in node.attrs
    }
    return found | {node.attrs["name"]: node.raw.removeprefix("\n") for node in form.all("textarea")}


def action_form(page: Node, action: str, question: int = 1) -> Node:
    """The form of an action that a question offers."""
    return page.one("article", id=f"question-{question}").one("form", data_action=action)


def links(page: Node) -> list[str]:
    """Where the page leads, by links and by what it loads."""
    found = [node.attrs[name] for node in page.all() for name in ("href", "src", "action", "page-href") if name in node.attrs]
    return [one for one in found if not one.startswith(("#", "data:"))]


def path_of(link: str, root: str = "") -> str:
    """The path of a link from the mount on."""
    path = urlsplit(link).path
    assert path == root or path.startswith(f"{root}/"), link
    return path.removeprefix(root)
