"""One command for everything that needs no run: lint, format, types, import directions, file length, shell."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
LONGEST = 260  # lines; beyond it a file has more than one concern
SHELL = [".ci/run", "scripts/lock"]


def long_files() -> list[str]:
    """Return a line for every Python file that outgrew one room."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.py"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counts = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in files.stdout.split()
    }
    return [f"{name}: {count} lines, {LONGEST} at most" for name, count in counts.items() if count > LONGEST]


def main() -> int:
    """Run every check, all of them even if one fails; return 1 if any did."""
    failed = []
    checks = {
        "ruff check": ["ruff", "check", "--quiet"],
        "ruff format": ["ruff", "format", "--check", "--quiet"],
        "mypy": ["mypy"],
        "lint-imports": ["lint-imports", "--no-cache"],
        "shellcheck": ["shellcheck", *SHELL],
        "file tree": ["python", "scripts/tree.py", "--check"],
    }
    for name, command in checks.items():
        program = BIN / command[0]
        done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(name)
            print(f"--- {name}\n{done.stdout}{done.stderr}", file=sys.stderr)
    if too_long := long_files():
        failed.append("file length")
        print("--- file length", *too_long, sep="\n", file=sys.stderr)
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
