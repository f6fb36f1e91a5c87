#!/usr/bin/env python3
"""Every link from one document to another file of the project leads somewhere.

    links.py ROOT
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=False)
    pages = [root / name for name in listed.stdout.splitlines()] or [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    dead = []
    links = 0
    for page in pages:
        for target in LINK.findall(page.read_text()):
            if "://" in target or target.startswith("mailto:"):
                continue
            links += 1
            if not (page.parent / target).exists():
                dead.append(f"{page.relative_to(root)}: no {target}")
    print("\n".join(dead) or f"{links} links in {len(pages)} documents lead somewhere")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
