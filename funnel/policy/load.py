"""From a file to a policy, or to everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path as FilePath

from pydantic import ValidationError

from funnel.data.alphabet import folded
from funnel.errors import InternalError, PolicyError, Problem
from funnel.format import schema
from funnel.format.groups import NAME as GROUPS
from funnel.format.groups import GroupsFile
from funnel.policy.checks import check
from funnel.policy.document import Document, Finding, Origin, described
from funnel.policy.files import Opener, inlined, kept, on_disk
from funnel.policy.mention import mentions
from funnel.policy.model import Policy
from funnel.policy.reader import MAX_BYTES, read
from funnel.policy.words import beside_tag, translate

_FILES = "Groups in a file are named by its path, relative to the policy."


def load(path: str | FilePath) -> Policy:
    """The policy in a file. Raises PolicyError with all its problems, each with line and column."""
    try:
        with FilePath(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused("policy-unreadable", f"the policy cannot be read: {error.strerror}", path) from None
    except ValueError:
        raise _refused("policy-unreadable", "no file can have this name", path) from None
    if len(content) > MAX_BYTES:
        raise _refused("policy-too-large", f"the policy is larger than {MAX_BYTES // 1024} KiB", path)
    return loads(_decoded(content, path), path)


def loads(text: str, path: str | FilePath = "policy.yaml", opened: Opener | None = None) -> Policy:
    """The policy in a text; `path` names its file in messages, and its folder is where its paths start.

    `opened` reads the files of groups that it names; without, they are read from that folder.
    Raises PolicyError with all problems, those of such files at their lines.
    """
    file = str(path)
    document = read(text, file)
    folder = FilePath(file).parent
    named = inlined(document.data, opened or on_disk(folder))
    document.data = named.data
    policy, wrong = _validated(document)
    unread = [Finding(place, "policy-unreadable", said, _FILES) for place, said in named.amiss]
    findings = [*wrong, *unread, *check(document, folder)]
    problems = [document.problem(finding) for finding in findings if not document.is_broken(finding.path)]
    if problems := [*document.problems, *problems, *named.problems]:
        raise PolicyError(list(dict.fromkeys(problems)))
    if policy is None:
        raise InternalError("a policy was refused without a reason")
    columns = {folded(mention.column): mention.path for mention in mentions(document.data)}
    policy._origin = Origin(file, text, document.places, columns, named.texts)
    return policy


def kept_policy(text: bytes, path: str | FilePath, groups: bytes | None) -> Policy:
    """A policy as evidence keeps it, with the files of groups that it names in groups.json, None where it names none.

    Raises PolicyError, UnicodeDecodeError, FormatError.
    """
    texts = {} if groups is None else schema.read(GroupsFile, GROUPS, groups).files
    return loads(text.decode(), path, kept(texts))


def _validated(document: Document) -> tuple[Policy | None, list[Finding]]:
    """The policy, or what its models find wrong."""
    if not isinstance(document.data, dict):
        said = f"a policy is a mapping of keys to values, not {described(document.data)}"
        return None, [Finding((), "wrong-type", said, "`funnel init` writes a policy to start from.")]
    try:
        return Policy.model_validate(document.data), []
    except ValidationError as error:
        return None, [*translate(error, document.data), *beside_tag(document.data)]


def _decoded(content: bytes, path: str | FilePath) -> str:
    """The text of a file in UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        problem = Problem(
            "policy-unreadable",
            "the policy is not in UTF-8",
            str(path),
            line,
            column,
            "Save the file in UTF-8.",
        )
        raise PolicyError([problem]) from None


def _refused(code: str, message: str, path: str | FilePath) -> PolicyError:
    """The error of a file as a whole."""
    return PolicyError([Problem(code, message, str(path))])
