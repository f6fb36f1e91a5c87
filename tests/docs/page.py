"""What the documents show as runnable: the commands of a page, and those that no test can run."""

import dataclasses
import pathlib
import re
import subprocess

NOT_RUN = "docs/not-run.md"
# What a reader would take for a command although no prompt stands before it.
BARE = re.compile(r"^(?:sudo |[A-Z][A-Z_]+=\S* )*(?:\./|(?:build|bench|scripts|examples)/\S+"
                  r"|(?:ringbolt|cmake|ctest|python3|ib_\w+|ibv_\w+|rping|rcopy|mpirun|export|eval) (?![a-z]+:))")


@dataclasses.dataclass(frozen=True)
class Command:
    text: str  #: as on the page, several lines for one that goes on after a backslash
    line: int
    is_there: bool  #: typed on the other machine
    status: int  #: that the page says it ends with

    @property
    def without_remark(self) -> str:
        return re.sub(r"\s+#\s.*$", "", self.text, flags=re.MULTILINE).strip()


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def blocks(page: pathlib.Path) -> list[list[tuple[int, str]]]:
    """The fenced blocks, each as its numbered lines, but those of languages that are no shell's."""
    found = []
    language = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
            found.append([])
        elif language in ("", "sh", "bash", "console"):
            found[-1].append((number, line))
    return found


def commands(page: pathlib.Path) -> list[Command]:
    found = []
    lines = iter([line for block in blocks(page) for line in block])
    for number, line in lines:
        prompt = re.match(r"(there)?\$ ", line)
        if not prompt:
            continue
        text = line[prompt.end():]
        while text.endswith("\\"):
            text += "\n" + next(lines)[1]
        status = re.search(r"#.*\bexit status (\d+)", text)
        found.append(Command(text, number, bool(prompt.group(1)), int(status.group(1)) if status else 0))
    return found


def bare_commands(page: pathlib.Path) -> list[tuple[int, str]]:
    """First lines of blocks that look like commands and have no prompt."""
    return [block[0] for block in blocks(page) if block and BARE.match(block[0][1])]


def not_run(root: pathlib.Path) -> dict[tuple[str, str], str]:
    """The table of NOT_RUN: why a command of a page is not run."""
    found = {}
    for line in (root / NOT_RUN).read_text().splitlines():
        row = re.match(r"\| \[(.+?)\]\(.+?\) \| `(.+)` \| (.+) \|$", line)
        if row:
            found[row.group(1), row.group(2)] = row.group(3)
    return found


def has_commands(root: pathlib.Path) -> list[str]:
    return [str(page.relative_to(root)) for page in pages(root) if commands(page)]


def namespace_refusal() -> str | None:
    done = subprocess.run(["unshare", "--net", "--mount", *map_root(), "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def map_root() -> list[str]:
    return [] if pathlib.Path("/proc/self").owner() == "root" else ["--map-root-user"]
