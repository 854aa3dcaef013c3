"""Every sentence that people read, by the file that it stands in: of templates, of pages, of modules that print."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = 5
"""A text of a module or of a page with fewer words is a label or a name."""
_SAYS = 4
"""And so is one with fewer words outside of placeholders."""
Extract = Callable[[str], Iterator[str]]

_TAG = re.compile(r"\{%-?\s*(\w+).*?-?%\}", re.DOTALL)
_MARKS = {"if": "⟨", "for": "⟨", "elif": "|", "else": "|", "endif": "⟩", "endfor": "⟩"}
_BREAKS = {"block", "endblock", "macro", "endmacro", "set", "endset", "extends", "include", "import"}
_END = re.compile(r"(?:(?<=[.?!])|(?<=[.?!]”))[⟨⟩|\s]*\s(?=[⟨⟩|\s]*[A-Z`{*“(])|(?<=\}\})[⟨⟩|\s]*\s(?=[A-Z][a-z])")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|vs|std|[A-Z])\.)$")


def template(text: str) -> Iterator[str]:
    """Of a Jinja template: `{{ … }}` as it stands, a condition or a loop as ⟨one | other⟩."""
    text = re.sub(r"\{#.*?#\}", " ", text, flags=re.DOTALL)
    text = _TAG.sub(lambda tag: "\n\n" if tag[1] in _BREAKS else f" {_MARKS.get(tag[1], ' ')} ", text)
    yield from _sentences(re.sub(r"(?m)^\* ", "\n\n", text))


def page(text: str) -> Iterator[str]:
    """Of a template in HTML: what stands between tags; inside a paragraph, tags say nothing."""
    text = re.sub(r"\{#.*?#\}", " ", text, flags=re.DOTALL)
    text = re.sub(r'\b_\(("[^"]*")\)', r"\1", text)  # other languages change what stands there
    text = re.sub(r"<(style|script|code)\b.*?</\1>", "\n\n", text, flags=re.DOTALL)
    text = _TAG.sub(lambda tag: "\n\n" if tag[1] in _BREAKS else f" {_MARKS.get(tag[1], ' ')} ", text)
    held = list[str]()

    def keep(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\x00{len(held) - 1}\x00"

    text = re.sub(r"\{\{.*?\}\}", keep, text, flags=re.DOTALL)
    text = re.sub(r"</?(?:b|i|em|strong|span)\b[^>]*>", "", text)
    text = html.unescape(re.sub(r"<[^>]*>", "\n\n", text))
    yield from _sentences(re.sub(r"\x00(\d+)\x00", lambda place: held[int(place[1])], text))


def markdown(text: str) -> Iterator[str]:
    """Of a page in Markdown: paragraphs, points and the cells of tables; no code."""
    text = re.sub(r"(?ms)^```.*?^```", "\n\n", text)
    text = re.sub(r"(?m)^    .*$", "", text)
    text = re.sub(r"(?m)^#+ .*$|^\|[-| :]+\|$|^!\[.*$", "\n\n", text)
    text = re.sub(r"(?m)^(?:- |\d+\. )", "\n\n", text)
    text = re.sub(r"(?m)^\|.*\|$", lambda row: "\n\n" + "\n\n".join(re.split(r"(?<!\\)\|", row[0])) + "\n\n", text)
    yield from (one for one in _sentences(text) if len(re.sub(r"`[^`]*`", " ", one).split()) >= WORDS)


def printed(text: str) -> Iterator[str]:
    """Of a module: its texts of several words that are no docstrings; `{…}` in them as it stands."""
    tree = ast.parse(text)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in ast.walk(node) if part is not node and isinstance(part, ast.Constant)}
    for node in ast.walk(tree):
        if id(node) not in silent and isinstance(node, ast.JoinedStr | ast.Constant) and (said := _text(node)):
            yield from (one for one in _sentences(said) if len(one.split()) >= WORDS)


def claims(text: str) -> Iterator[str]:
    """Of a module of claims, too: the first line of every function's docstring."""
    yield from printed(text)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield from _sentences((ast.get_docstring(node) or "").partition("\n")[0])


def printers(path: str) -> dict[str, str]:
    """Of a module's sentences the function that has them, `module:function`: what may make them true."""
    if not path.endswith(".py"):
        return {}
    module, told = path.removesuffix(".py").replace("/", "."), dict[str, str]()
    bodies = [("", ast.parse((ROOT / path).read_text("utf-8")).body)]
    while bodies:
        within, body = bodies.pop(0)
        for node in body:
            if isinstance(node, ast.ClassDef):
                bodies.append((f"{within}{node.name}.", node.body))
            elif isinstance(node, ast.FunctionDef):
                for sentence in claims(ast.unparse(node)):
                    told.setdefault(sentence, f"{module}:{within}{node.name}")
    return told


def _text(node: ast.expr) -> str:
    """The text of a constant or of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _sentences(text: str) -> Iterator[str]:
    """The sentences of some paragraphs, each once, without the marks that begin or end it."""
    for paragraph in re.split(r"\n\s*\n", text):
        start = 0
        for end in _END.finditer(paragraph):
            if not _ABBREVIATED.search(paragraph[: end.start()]):
                yield from _cleaned(paragraph[start : end.start()])
                start = end.end()
        yield from _cleaned(paragraph[start:])


def _cleaned(sentence: str) -> Iterator[str]:
    """A sentence on one line, if it has words."""
    line = re.sub(r"\s+([,.;:])", r"\1", " ".join(sentence.split()))
    while (bare := line.strip(" ⟨⟩|")) != line or line.count("⟨") != line.count("⟩"):
        line = bare
        opened, closed = line.count("⟨"), line.count("⟩")
        if opened > closed:
            place = line.index("⟨")
        elif closed > opened:
            place = line.rindex("⟩")
        else:
            continue
        line = " ".join((line[:place] + " " + line[place + 1 :]).split())
    if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^{}]*\}", "", line))) >= _SAYS:
        yield line


TONGUES = ROOT / "funnel/report/templates/de"
"""Other languages say what English does (tests/unit/report/test_tongue.py): one row serves both."""
SOURCES: dict[str, dict[str, Extract]] = {
    "report": {"funnel/report/templates/**/*.txt": template, "funnel/report/templates/**/*.html": page,
               "funnel/report/*.py": printed},
    "audit": {f"funnel/audit/{room}*.py": printed for room in ("", "kernel/", "extras/", "verify/")},
    "ledger": {"funnel/ledger/*.py": printed},
    "lock": {"funnel/lock/*.py": printed, "funnel/analyst/relock.py": printed, "funnel/plan/summary.py": printed},
    "diff": {"funnel/analyst/diff/*.py": printed},
    "pages": {"README.md": markdown, "SECURITY.md": markdown},
}  # fmt: skip
"""By the name of the table that has their rows: files, and how their sentences are found."""
CLAIMS = ("claims.py", "drawing.py", "noise.py")


def found(name: str) -> dict[str, list[str]]:
    """The sentences of each file of a table, in order, each once."""
    told = dict[str, list[str]]()
    for pattern, extract in SOURCES[name].items():
        for path in sorted(path for path in ROOT.glob(pattern) if not path.is_relative_to(TONGUES)):
            own = claims if path.parent.name == "kernel" and path.name in CLAIMS else extract
            if sentences := list(dict.fromkeys(own(path.read_text("utf-8")))):
                told[path.relative_to(ROOT).as_posix()] = sentences
    return told
