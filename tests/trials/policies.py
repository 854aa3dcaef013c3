"""Mutated policies through the loader, the plan's compiler and the commands.

    python -m tests.trials policies --runs 100000 --seed 1 --sample 40

Every ready policy is mutated: its bytes, its tokens, its nodes, its nesting, numbers, texts and anchors. Whatever
comes out, the answer has to be a policy or a PolicyError whose problems a person can use, within the limits below.
A finding is printed with the seed of its case; `--case SEED` shows and repeats a single one.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from funnel.engine import Source, find, open_engine
from funnel.errors import CATALOGUE, FunnelError, InternalError, PolicyError
from funnel.plan.build import compile_plan
from funnel.policy import load

ROOT = Path(__file__).resolve().parents[2]

POLICIES = sorted((ROOT / "policies").glob("*.yaml"))
SECONDS = 5.0
"""Processor time that one case may take; a policy of the largest size allowed takes about one."""
GROWTH = 256 * 1024
"""KiB by which one case may raise the process's peak memory."""
LONGEST = 4000
"""Characters of one problem's message: it is a line for a person."""

WORDS = [
    *(
        "version",
        "name",
        "source",
        "table",
        "filter",
        "entity",
        "missing",
        "estimate",
        "minimum",
        "kind",
        "sensitive",
    ),
    *(
        "public",
        "bins",
        "top",
        "round",
        "clip",
        "unseen",
        "values",
        "privacy",
        "notion",
        "epsilon",
        "split",
        "order",
    ),
    *(
        "confidence",
        "mechanism",
        "draws",
        "key",
        "budget",
        "release",
        "to",
        "private",
        "format",
        "sign",
        "formulas",
    ),
    *(
        "lip",
        "ldp",
        "ldp-x",
        "srlip",
        "rldp",
        "perfect",
        "mutual-information",
        "optimal",
        "polyopt",
        "auto",
        "equal",
    ),
]
SCRAPS = [
    *("", " ", "\n", "\t", ": ", "- ", "? ", "[", "]", "{", "}", ",", "&a ", "*a", "!!str ", "!x ",
      "!!python/name:os "),
    *("|", ">", "|2-\n", "'", '"', "\\", "#", "%YAML 9.9\n", "%TAG ! x\n", "---\n",
      "...\n", "<<: ", "~", "null", "yes"),
    *("0", "-0", "-1", "1e400", "1e-400", ".nan", "-.inf", "012", "0o7", "0x1F", "1_000", "1:30",
      "9" * 400, "9" * 5000),
    *("2026-01-01", "=", "\x00", "\x1b[2J", "\ufeff", "\u2028", "\x85", "\u202e", "é", "e\u0301", "𝄞",
      '"\\ud800"', '"\\x1b[2J"', '"\\U00110000"', "env:", "file:", "../", "/dev/zero"),
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**18, 10**400, -(10**4000), 0.0, -0.0, 1e308, 5e-324, float("inf"), float("nan"),
    "", " ", "\t", "a\nb", "x" * 10_000, "é" * 300, "\u202eabc", "marital_status",
    "age", "AGE", "env:X", "file:", "*", "**/*",
    "a#b", "postgresql://h/d#s.t", "'; DROP TABLE source; --", "=1+1", [], {}, [[]], [{}], {"": {}}, [None], ["a", "a"],
    {"kind": "optimal"}, {"kind": ["x"]}, {"name": {"name": "x"}}, [0, 1, 2], [1e308, 1e309], ["a", ["b", ["c"]]],
]  # fmt: skip
Mutation = Callable[[str, random.Random], str | bytes]


def _cut(text: str, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice([0, 1, 2, 5, 20, 100]))


def of_bytes(text: str, rng: random.Random) -> bytes:
    """Bits turned, bytes cut, doubled and replaced; other encodings."""
    raw = bytearray(text.encode())
    if rng.random() < 0.1:
        return text.encode(rng.choice(["utf-16", "utf-8-sig", "utf-32", "utf-7"]))
    for _ in range(rng.choice([1, 1, 2, 5, 50])):
        place = rng.randrange(len(raw) + 1)
        match rng.randrange(4):
            case 0 if place < len(raw):
                raw[place] ^= 1 << rng.randrange(8)
            case 1:
                del raw[place : place + rng.randrange(1, 40)]
            case 2:
                raw[place:place] = raw[place : place + rng.randrange(1, 200)]
            case _:
                raw[place:place] = rng.randbytes(rng.randrange(1, 5))
    return bytes(raw)


def of_tokens(text: str, rng: random.Random) -> str:
    """Words of the language and scraps of YAML put in or in place of others."""
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        start, end = _cut(text, rng)
        text = text[:start] + rng.choice(WORDS if rng.random() < 0.4 else SCRAPS) + text[end:]
    return text


def of_lines(text: str, rng: random.Random) -> str:
    """Lines left out, doubled, moved, and indented otherwise."""
    lines = text.split("\n")
    for _ in range(rng.choice([1, 2, 4])):
        place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0 if len(lines) > 1:
                del lines[place]
            case 1:
                lines.insert(other, lines[place])
            case 2:
                lines[place], lines[other] = lines[other], lines[place]
            case _:
                lines[place] = " " * rng.randrange(6) + lines[place].lstrip()
    return "\n".join(lines)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for key, part in inner for one in _paths(part, (*path, key)))]


@functools.cache
def _parsed(text: str) -> Any:
    return yaml.safe_load(text)


def of_nodes(text: str, rng: random.Random) -> str:
    """A part replaced by another value or another part, left out, or put under another key."""
    data = copy.deepcopy(_parsed(text))
    for _ in range(rng.choice([1, 1, 2, 3])):
        path = rng.choice([one for one in _paths(data) if one] or [("name",)])
        parent = data
        for key in path[:-1]:
            parent = parent[key]
        other = data
        for key in rng.choice(_paths(data)):
            other = other[key]
        match rng.randrange(4):
            case 0:
                parent[path[-1]] = copy.deepcopy(rng.choice(VALUES))
            case 1:
                parent[path[-1]] = json.loads(json.dumps(other))
            case 2 if isinstance(parent, dict):
                parent[rng.choice(WORDS)] = parent.pop(path[-1])
            case _:
                del parent[path[-1]]
    if rng.random() < 0.5:
        return json.dumps(data, ensure_ascii=rng.random() < 0.5)
    return str(yaml.safe_dump(data, allow_unicode=True, default_flow_style=rng.random() < 0.3))


def of_nesting(text: str, rng: random.Random) -> str:
    """Brackets, mappings and indents without end, closed or not."""
    deep = rng.choice([5, 17, 100, 1000, 20_000])
    opened, closed = rng.choice(
        [("[", "]"), ("{a: ", "}"), ("[{? ", "}]"), ("- ", ""), ("? ", ""), ("!x [", "]")]
    )
    shape = opened * deep + "x" + (closed * deep if rng.random() < 0.7 else "")
    start, end = _cut(text, rng)
    return text[:start] + rng.choice(["", ": ", "\nname: "]) + shape + text[end:]


def of_anchors(text: str, rng: random.Random) -> str:
    """Anchors, aliases, merge keys and tags; the billion laughs."""
    if rng.random() < 0.2:
        rows = ["l0: &l0 [x, x]", *(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 40))]
        return "\n".join([*rows, text])
    for _ in range(rng.choice([1, 3, 10])):
        found = rng.choice([": ", "- ", "\n"])
        place = text.find(found, rng.randrange(len(text) + 1)) + len(found)
        mark = rng.choice(
            ["&a ", "*a ", "<<: *a\n", "!!binary ", "!!set ", "!!python/object/apply:os.system ", "!<x> "]
        )
        text = text[:place] + mark + text[place:]
    return text


def of_numbers(text: str, rng: random.Random) -> str:
    """Every number in the file replaced by one that no policy means."""
    import re

    strange = [
        *("9" * k for k in (20, 400, 5000)),
        "1e999",
        "-1e999",
        "0.1e-999",
        "+.inf",
        "0x" + "f" * 400,
        "1__0",
        "00",
    ]
    return re.sub(r"\b[0-9]+(\.[0-9]+)?\b", lambda _: rng.choice([_[0], rng.choice(strange)]), text)


def of_unicode(text: str, rng: random.Random) -> str:
    """Letters from anywhere: marks, directions, look-alikes, planes beyond the first."""
    for _ in range(rng.choice([1, 3, 30])):
        place = rng.randrange(len(text) + 1)
        letter = chr(
            rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000), rng.randrange(0x300)])
        )
        text = text[:place] + letter * rng.choice([1, 1, 2, 300]) + text[place:]
    return text


def of_size(text: str, rng: random.Random) -> str:
    """As much of something as fits: keys, items, problems, names that look alike."""
    many = rng.choice([100, 1000, 8000, 30_000])
    match rng.randrange(6):
        case 0:
            return text + "\n" + "\n".join(f"k{i}: 1" for i in range(many))
        case 1:
            return text.replace("public:", "public: [" + ", ".join(f"c{i}" for i in range(many)) + "]\nx:", 1)
        case 2:
            return text + "\nsensitive: [" + "a, " * many + "]"
        case 3:
            return text.replace("name:", "name: " + "a" * many * 4 + "\nx:", 1)
        case 4:
            return text + "\n" + "name: x\n" * many
        case _:
            return text + "\n#" + "é" * many * 3


MUTATIONS: tuple[Mutation, ...] = (
    of_bytes, of_tokens, of_lines, of_nodes, of_nesting, of_anchors, of_numbers, of_unicode, of_size,
)  # fmt: skip
SHARES = (20, 25, 10, 25, 3, 5, 5, 6, 1)
"""How often each is taken, of a hundred; the last one is slow by design."""


class TooSlowError(BaseException):
    """The processor time of one case is used up; no handler of the program catches it."""


@dataclass
class Tally:
    """What was tried, and what was found: (seed, what) in `findings`."""

    cases: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0


def case(seed: int) -> tuple[str, Path, bytes]:
    """The mutation's name, the policy that it began with, and the mutated file."""
    rng = random.Random(seed)
    policy = rng.choice(POLICIES)
    text: str | bytes = policy.read_text(encoding="utf-8")
    made = rng.choices(MUTATIONS, SHARES, k=rng.choice([1, 1, 1, 2]))
    names = []
    for mutation in made:
        if isinstance(text, bytes) or (mutation is of_nodes and names):
            continue
        text = mutation(text, rng)
        names.append(mutation.__name__)
    return "+".join(names), policy, text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def wrong(error: PolicyError, content: bytes) -> str | None:
    """What a person could not use about a refusal."""
    text = content.decode("utf-8", "replace")
    lines = 1 + sum(text.count(end) for end in "\n\r\x85\u2028\u2029")
    for problem in error.problems:
        said = problem.message + (problem.suggestion or "")
        if problem.code not in CATALOGUE:
            return f"code {problem.code}"
        if not 0 <= problem.line <= lines:
            return f"line {problem.line} of {lines}"
        if len(said) > LONGEST:
            return f"a message of {len(said)} characters [{problem.code}]"
        if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in said):
            return f"a control character in a message [{problem.code}]"
    return None


def attempt(
    content: bytes, file: Path, sources: dict[Path, tuple[Source, dict[str, str]]], policy: Path
) -> str:
    """The outcome of one case in a word, or `finding: …`; the file is written first."""
    file.write_bytes(content)
    try:
        loaded = load(file)
    except PolicyError as error:
        found = wrong(error, content)
        return error.problems[0].code if found is None else f"finding: {found}"
    except InternalError as error:
        return f"finding: {error}"
    source, schema = sources[policy]
    try:
        compile_plan(loaded, schema, source)
    except InternalError as error:
        return f"finding: {error}"
    except FunnelError as error:
        return f"accepted, then {error.code}"
    return "accepted"


def guarded(*arguments: Any) -> tuple[str, float]:
    """The same within its processor time and memory, whatever is raised; and the seconds that it took."""
    peak, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        outcome = attempt(*arguments)
    except TooSlowError:
        outcome = f"finding: more than {SECONDS} s of processor time"
    except BaseException as error:  # that is what is looked for
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome = f"finding: {type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    if grown > GROWTH:
        outcome = f"finding: {grown // 1024} MiB more memory"
    return outcome, time.process_time() - begun


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


def fuzz(runs: int, seed: int, told: Callable[[str], None] = lambda _: None) -> Tally:
    """That many cases from a seed on, in this process."""
    tally, sources = Tally(), {policy: _source(policy) for policy in POLICIES}
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    try:
        with tempfile.TemporaryDirectory(prefix="funnel-fuzz-") as folder:
            file = Path(folder) / "policy.yaml"
            for number in range(seed * 10**9, seed * 10**9 + runs):
                name, policy, content = case(number)
                outcome, seconds = guarded(content, file, sources, policy)
                tally.cases[name] += 1
                tally.slowest = max(tally.slowest, seconds)
                if outcome.startswith("finding: "):
                    tally.findings.append((number, f"{name} of {policy.name}: {outcome}"))
                    told(f"case {number}: {tally.findings[-1][1]}")
                    outcome = "finding"
                tally.outcomes[outcome] += 1
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return tally


def _source(policy: Path) -> tuple[Source, dict[str, str]]:
    """The table of a ready policy, and its columns."""
    loaded = load(policy)
    source = find(loaded.path(loaded.source.table))
    with open_engine(source) as engine:
        return source, engine.schema()


def commands(sample: int, seed: int) -> list[str]:
    """A sample through `funnel check`, all at once, and `funnel plan`, one by one: exit codes 0 and 1 only."""
    found = []
    with tempfile.TemporaryDirectory(prefix="funnel-fuzz-") as folder:
        files = []
        for number in range(seed * 10**9, seed * 10**9 + sample):
            _, policy, content = case(number)
            files.append(Path(folder) / f"{number}.yaml")
            tables = str(policy.parent.parent / "examples").encode()
            files[-1].write_bytes(content.replace(b"../examples", tables))
        calls = [["check", "--json", *map(str, files)], *(["plan", str(file)] for file in files)]
        for call in calls:
            done = subprocess.run(
                [sys.executable, "-m", "funnel", *call],
                cwd=ROOT,
                capture_output=True,
                timeout=600,
                check=False,
            )
            if (
                done.returncode not in (0, 1)
                or b"Traceback" in done.stderr
                or b"\x1b" in done.stdout + done.stderr
            ):
                told = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                found.append(f"funnel {call[0]} {Path(call[-1]).name}: exit {done.returncode}, {told}")
    return found


def main(arguments: list[str]) -> int:
    """Run from the command line; exit code 1 where something was found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.trials policies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=1000, help="cases through the loader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--sample", type=int, default=0, help="of these, through `funnel check` and `funnel plan`"
    )
    parser.add_argument("--case", type=int, help="show and repeat one case")
    asked = parser.parse_args(arguments)
    if asked.case is not None:
        name, policy, content = case(asked.case)
        sys.stdout.buffer.write(content[:4000] + b"\n")
        print(f"{name} of {policy.name}, {len(content):,} bytes")
        with tempfile.TemporaryDirectory() as folder:
            print(attempt(content, Path(folder) / "policy.yaml", {policy: _source(policy)}, policy))
        return 0
    begun = time.process_time()
    tally = fuzz(asked.runs, asked.seed, print)
    spent = time.process_time() - begun
    for title, counts in (("mutations", tally.cases), ("outcomes", tally.outcomes)):
        print(f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in counts.most_common()))
    print(f"{asked.runs:,} cases in {spent:.0f} s of processor time, the slowest {tally.slowest:.2f} s")
    found = commands(asked.sample, asked.seed) if asked.sample else []
    print(
        "\n".join(
            [
                *found,
                f"{len(tally.findings)} findings in the loader, {len(found)} in {asked.sample} by command",
            ]
        )
    )
    return 1 if tally.findings or found else 0
