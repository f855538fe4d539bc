"""Write the README's file tree: every file with the first line of its docstring or comment.

`python scripts/tree.py` rewrites the part between the two marks; `--check` only says whether it is current.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- tree: written by scripts/tree.py -->", "<!-- end of tree -->"
# Files that cannot say it themselves.
PURPOSE = {
    "LICENSE": "Apache-2.0",
    "README.md": "this page",
    "pyproject.toml": "the one distribution: dependencies with a reason each, and all tools' settings",
    "CHANGELOG.md": "what a user notices, by version",
    "CONTRIBUTING.md": "how to change things here",
    ".gitignore": "what is not kept",
    "docs/reference/trainingjob.schema.json": "JSON schema of the spec, for editors (generated)",
    "launcher/ddpk8s/fabric/sources.json": "Addresses of the sources that profiles cite, by key",
    "launcher/ddpk8s/cli/templates/train.py.txt": "the script that `ddpk8s init --template own-script` writes",
    "launcher/ddpk8s/render/templates/pod_main.py.txt": "where the agent starts in a pod",
    "trainer/ddpk8s_trainer/report/page.html.j2": "the report's page",
    "trainer/ddpk8s_trainer/report/style.css": "its style, light and dark",
    "docs/reference/spec.md": "every field of the spec (generated)",
    "docs/reference/fabric.md": "every fabric profile, and how to write one (generated)",
}
# Folders whose files are all of one kind: one line for all.
TOGETHER = {
    "tests/golden": "every example in every backend as reviewed objects; `python -m tests.golden` writes them again",
    "requirements": "every dependency pinned by hash, one lock file per extra, and uv itself",
    "tests/unit": "tests of single modules, mirroring the source",
}


def purpose(path: Path) -> str:
    """Return the first sentence a file says of itself."""
    name = str(path.relative_to(ROOT))
    if name in PURPOSE:
        return PURPOSE[name]
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        first = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    elif path.suffix == ".md":
        first = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")
    else:
        first = next((line.lstrip("# ") for line in text.splitlines() if re.match(r"#[^!]", line)), "")
    if not first:
        sys.exit(
            f"{name} does not say what it is for: give it a docstring, a comment, or a line in scripts/tree.py"
        )
    return first.rstrip(".").replace("`", "")


def tree() -> str:
    """Return the tree as text."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines: list[str] = []
    seen: set[str] = set()
    for name in sorted(listed.stdout.splitlines(), key=lambda n: (n.count("/") == 0, n)):
        path = ROOT / name
        group = next((folder for folder in TOGETHER if name.startswith(f"{folder}/")), None)
        if group:
            if group not in seen:
                seen.add(group)
                lines.append(f"{group + '/':<52} {TOGETHER[group]}")
            continue
        if path.exists() and path.stat().st_size and path.name not in ("py.typed",):
            lines.append(f"{name:<52} {purpose(path)}")
    return "\n".join(lines)


def main() -> int:
    """Rewrite or check the README; return 1 when it was not current."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    new = f"{before}{BEGIN}\n```text\n{tree()}\n```\n{END}{after}"
    if new == text:
        return 0
    if "--check" in sys.argv:
        print("the README's file tree is not current: run `python scripts/tree.py`", file=sys.stderr)
        return 1
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
