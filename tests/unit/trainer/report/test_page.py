import math
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from ddpk8s_trainer.metrics.events import read_events
from ddpk8s_trainer.report import write_report
from ddpk8s_trainer.report.page import render

EVIL = "</title></style></svg><script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}$x_1$"


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]

    def handle_data(self, data):
        self.text += data


def titles(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_every_picture_and_table_is_there_when_the_run_has_everything(restarted_job):
    text = write_report(restarted_job).read_text()
    assert titles(text) == [
        "Loss", "Evaluation", "Learning rate", "Gradient norm", "Sample throughput", "Token throughput",
        "Where the time goes", "Attempts", "Attempts", "Confusion at step 800", "Evaluations", "Artifacts",
        "Settings",
    ]  # fmt: skip
    page = Page(text)
    for said in (
        "finished",
        "optimizer.weightDecay",
        "killed",
        "model, Hugging Face directory",
        "step-00000800/",
    ):
        assert said in page.text
    assert "checkpoint, best model" in page.text


def test_the_page_needs_nothing_from_outside_when_opened(restarted_job):
    text = render(restarted_job)
    page = Page(text)
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
    addresses = [value for _, name, value in page.attributes if name in ("href", "src", "xlink:href")]
    assert addresses
    assert all(re.fullmatch(r"#[\w.-]+|[\w.-]+/?", address) for address in addresses)
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"
    }  # fmt: skip
    assert not re.search(r"url\((?!['\"]?#)|@import", text)
    assert len(text) < 400_000


def test_pictures_are_sound_and_their_ids_mean_one_thing_when_put_together(restarted_job):
    meanings = {}
    pictures = re.findall(r"<svg.*?</svg>", render(restarted_job), flags=re.S)
    assert len(pictures) == 8
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.get("aria-label")
        for element in root.iter():
            if element.get("id"):
                meaning = ElementTree.tostring(element)
                assert meanings.setdefault(element.get("id"), meaning) == meaning
    # Colors follow the theme: none is left as matplotlib wrote it.
    assert not re.search(r"#0[1-5]0[0-9a-f]{3}|#000000", "".join(pictures))


def test_the_page_is_the_same_when_written_twice(restarted_job):
    assert render(restarted_job) == render(restarted_job)


def test_settings_of_matplotlib_stay_when_a_report_is_written(restarted_job):
    # To look at `backend` would load pyplot.
    names = [name for name in mpl.rcParams if name != "backend"]
    before = [mpl.rcParams[name] for name in names]
    render(restarted_job)
    assert [mpl.rcParams[name] for name in names] == before


def test_nothing_is_injected_when_names_are_hostile(sample_job):
    job = (
        sample_job(job=EVIL, labels=[EVIL, "服务很好", "{% raw %}"])
        .start(runId=EVIL)
        .steps(10, 400)
        .evaluate(400)
    )
    rejected = [{"path": EVIL, "reason": EVIL}]
    job.start(400, rejected=rejected, runId=EVIL).steps(410, 500).evaluate(500).end(EVIL, 500)
    (job.directory / "step-<b>").mkdir()
    page = Page(render(job.save()))
    plain = Page(render(sample_job().start().steps(10, 400).evaluate(400).end("finished", 400).save()))
    assert page.tags <= plain.tags | {"ul", "li"}
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert page.text.count(EVIL) >= 7
    assert "服务很好" in page.text
    policy = [value for _, name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize(
    ("build", "said", "missing"),
    [
        (lambda job: job.start(), "no curves", "Loss"),
        (lambda job: job.start().steps(1, 1).end("finished", 1), "Nothing was evaluated", "Evaluation"),
        (lambda job: job.start().steps(10, 400), "Still running, or ended without a word", "Evaluation"),
        (lambda job: job.start().evaluate(0), "Accuracy", "Gradient norm"),
        (lambda job: job.steps(10, 100), "No attempt left word", "Attempts"),
        (lambda job: job.start().steps(10, 200, loss=math.nan, gradNorm=None), "NaN", "Gradient norm"),
        (lambda job: job.start().end("DataMistake", 0), "Ended by DataMistake", "Loss"),
        (lambda job: job.start().steps(10, 90, split={}), "Goodput", "Where the time goes"),
    ],
)  # fmt: skip
def test_the_page_is_written_when_pieces_are_missing(sample_job, build, said, missing):
    text = render(build(sample_job()).save())
    assert said in Page(text).text
    assert missing not in titles(text)


@pytest.mark.parametrize("name", ["metrics.jsonl", "attempts.jsonl", "training.json"])
@pytest.mark.parametrize("content", [None, "", "{", "[]\n"])
def test_the_page_is_written_when_a_file_is_missing_or_broken(restarted_job, name, content):
    path = restarted_job / name
    path.unlink() if content is None else path.write_text(content)
    assert "<h1>" in render(restarted_job)


def test_mistakes_are_listed_when_there_are_many_labels(sample_job):
    job = sample_job(labels=[f"label {number}" for number in range(40)]).start().steps(10, 100).evaluate(100)
    text = render(job.save())
    assert "Most frequent mistakes" in text
    assert text.count('class="cell') == 0
    event = next(
        event for event in read_events(job.directory / "metrics.jsonl") if event["event"] == "evaluation"
    )
    worst = max(
        (count, row, column)
        for row, counts in enumerate(event["confusion"])
        for column, count in enumerate(counts)
        if row != column
    )
    first = re.search(r"<tbody>\s*<tr>(.*?)</tr>", text[text.index("Most frequent mistakes") :], flags=re.S)[
        1
    ]
    assert f'<td class="number">{worst[0]}</td>' in first


def test_a_log_axis_is_used_when_a_spike_would_flatten_the_curve(sample_job):
    job = sample_job().start().steps(10, 400)
    assert "(logarithmic)" not in render(job.save())
    job.metrics[20]["loss"] = 5000.0
    assert "cross entropy (logarithmic)" in render(job.save())


def test_readers_never_see_half_a_page_when_it_is_written_again(restarted_job):
    path = write_report(restarted_job)
    whole, seen, done = path.read_text(), set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(path.read_text() == whole)

    watcher = threading.Thread(target=watch)
    watcher.start()
    write_report(restarted_job)
    done.set()
    watcher.join()
    assert seen == {True}
    assert not list(restarted_job.glob(".partial*"))


def test_the_command_prints_the_path_or_the_mistake_when_run(restarted_job, tmp_path):
    code = """
import sys
from ddpk8s_trainer.report.__main__ import main
status = main(sys.argv[1:])
sys.exit(status or sorted({"torch", "matplotlib.pyplot"} & set(sys.modules)) or 0)
"""
    good = subprocess.run(
        [sys.executable, "-c", code, str(restarted_job)], capture_output=True, text=True, check=False
    )
    assert (good.returncode, good.stdout, good.stderr) == (0, f"{restarted_job / 'report.html'}\n", "")
    command = [sys.executable, "-m", "ddpk8s_trainer.report", str(tmp_path / "none")]
    bad = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (78, "")
    assert bad.stderr.startswith("error: ")
    assert "hint: " in bad.stderr
    assert "Traceback" not in bad.stderr
