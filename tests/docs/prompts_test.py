#!/usr/bin/env python3
"""No document shows a command without a prompt, and the list of those that are not run is true; it is printed.

    prompts_test.py ROOT

Exit status 77, with the list, when all is well and it is not empty.
"""

import pathlib
import sys

import page as documents


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    found = []
    shown = set()
    for page in documents.pages(root):
        name = str(page.relative_to(root))
        found += [f"{name}:{line}: a command without a prompt: {text}" for line, text in documents.bare_commands(page)]
        shown |= {(name, command.without_remark.splitlines()[0].rstrip(" \\")) for command in documents.commands(page)}
    listed = documents.not_run(root)
    found += [f"{documents.NOT_RUN}: {name} has no command `{text}`" for name, text in listed if (name, text) not in shown]
    if found or not shown:
        print("\n".join(found) or "no page shows a command")
        return 1
    if listed:
        print(f"skip: {len(listed)} commands of documents are not run: "
              + "; ".join(f"{name}: {text} ({why})" for (name, text), why in listed.items()))
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
