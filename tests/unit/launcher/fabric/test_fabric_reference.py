"""The page on profiles is that of the profiles as they are."""

from pathlib import Path

from ddpk8s.fabric.reference import PAGE, page

ROOT = Path(__file__).resolve().parents[4]


def test_page_is_current() -> None:
    written = (ROOT / "docs" / "reference" / PAGE).read_text(encoding="utf-8")
    assert written == page(), "run python -m ddpk8s.fabric.reference docs/reference"
