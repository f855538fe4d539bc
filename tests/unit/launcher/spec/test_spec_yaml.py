"""YAML traps: each has a defined answer, with file, line and column."""

from collections.abc import Callable

import pytest

Report = Callable[..., str]


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (
            "  env: {FOO: no}",
            "job.yaml:13:9: spec.env.FOO is no without quotes, "
            "which is text to some readers of YAML and false to others\n"
            '  hint: write "no" in quotes for the text, or false for the boolean',
        ),
        (
            "  env: {FOO: 08}",
            "job.yaml:13:9: spec.env.FOO is 08, a number with a leading zero, "
            "which some readers of YAML take for octal\n"
            '  hint: write 8, or "08" in quotes if you mean the text',
        ),
        (
            "  env: {FOO: 1}",
            'job.yaml:13:9: spec.env.FOO is 1, but must be text\n  hint: quote it: FOO: "1"',
        ),
        (
            "  env: {FOO: 1e-3}",
            'job.yaml:13:9: spec.env.FOO is 1e-3, but must be text\n  hint: quote it: FOO: "1e-3"',
        ),
        (
            "  env: {FOO: true}",
            'job.yaml:13:9: spec.env.FOO is true, but must be text\n  hint: quote it: FOO: "true"',
        ),
        (
            "  env: {FOO: }",
            'job.yaml:13:9: spec.env.FOO is null, but must be text\n  hint: write FOO: "" for an empty text',
        ),
        (
            "  env: {FOO: [PAD]}",
            "job.yaml:13:9: spec.env.FOO is a list, but must be text\n"
            "  hint: give one, or quote it if it is one text that begins with `[`",
        ),
        (
            "  env: {HF_TOKEN: 0123}",
            "job.yaml:13:9: spec.env.HF_TOKEN is a number or a word on which readers of YAML disagree\n"
            "  hint: write it in quotes",
        ),
        (
            "  env: &all {FOO: *all}",
            "job.yaml:13:14: spec.env.FOO is `*all`, an alias, and aliases are not supported\n"
            '  hint: write the value out, or "*all" in quotes if you mean the text',
        ),
        (
            "  env: !!map {FOO: a}",
            "job.yaml:13:3: spec.env has the tag `tag:yaml.org,2002:map`, and tags are not supported\n"
            "  hint: remove the tag, or quote the value if it is text",
        ),
        (
            "  env: {FOO: !secret a}",
            "job.yaml:13:9: spec.env.FOO has the tag `!secret`, and tags are not supported\n"
            "  hint: remove the tag, or quote the value if it is text",
        ),
        (
            "  env:\n    <<: {FOO: a}",
            "job.yaml:14:5: in spec.env `<<` is a merge key, and those are not supported\n  hint: write the fields out",
        ),
        (
            "  env: {1: a}",
            'job.yaml:13:9: in spec.env the key 1 is no text\n  hint: write "1" in quotes if you mean the text',
        ),
        (
            "  env: {true: a}",
            'job.yaml:13:9: in spec.env the key true is no text\n  hint: write "true" in quotes if you mean the text',
        ),
        (
            "  env: {? [a] : b}",
            "job.yaml:13:11: in spec.env a key is a list, a mapping or an alias, but must be text",
        ),
        (
            "  env: {FOO: a, BAR: b, FOO: c}",
            "job.yaml:13:25: spec.env.FOO is there twice\n  hint: keep one of them; the first is at job.yaml:13:9",
        ),
        ("  topology: {nnodes: .inf}", "job.yaml:13:14: spec.topology.nnodes is .inf, but must be finite\n"
            "  hint: write a number, or leave the field out for its default"),
        (
            r'  env: {FOO: "\ud800"}',
            "job.yaml:13:9: spec.env.FOO holds half of a surrogate pair, which is no character",
        ),
        (
            r'  env: {FOO: "a\u0007"}',
            "job.yaml:13:9: spec.env.FOO holds the control character U+0007, which YAML and logs do not carry",
        ),
    ],
)  # fmt: skip
def test_trap_is_explained_when_a_value_falls_into_it(
    report: Report, base: str, line: str, printed: str
) -> None:
    assert report(base + line + "\n") == printed


@pytest.mark.parametrize("value", ["1e-3", "1.0e-3", "0.001", ".001"])
def test_float_is_a_number_however_it_is_written(report: Report, base: str, value: str) -> None:
    assert report(base + f"    optimizer: {{learningRate: {value}}}\n") == ""


def test_keys_that_look_like_booleans_are_text_when_names_are_free(report: Report, base: str) -> None:
    assert report(base.replace("  training:", '  env: {N: "4", y: "1", no: "x", ON: "x"}\n  training:')) == ""


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a: [1, 2", "job.yaml:1:4: this is no valid YAML: in this bracket a comma or the closing bracket is missing\n"
            "  hint: close the bracket, and put a comma between entries"),
        ("a: 'b\nc: d", "job.yaml:1:4: this is no valid YAML: this quote is not closed\n"
            "  hint: close it at the end of the text"),
        ("a: b: c", "job.yaml:1:5: this is no valid YAML: a `:` cannot stand here\n"
            "  hint: indent all fields of one section alike, and put a space after `:` and `-`; "
            "quote text that holds `: `"),
        ("a:\n  - b\n c: 1", "job.yaml:3:2: this is no valid YAML: "
            "this line is not indented like the section it belongs to\n"
            "  hint: indent all fields of one section alike, and put a space after `:` and `-`"),
        ("a:\n  b: 1\n\tc: 2", "job.yaml:3:1: a tab indents this line, and YAML allows only spaces\n"
            "  hint: replace tabs by spaces"),
        ("a: @b", "job.yaml:1:4: this is no valid YAML: text cannot begin with this character\n"
            "  hint: put the text in quotes"),
        ('a: "\\q"', "job.yaml:1:6: this is no valid YAML: no such escape in double quotes\n"
            "  hint: write a backslash twice, or use single quotes"),
        ("a: 1\nb\nc: 2", "job.yaml:2:1: this is no valid YAML: a `key: value` is expected here\n"
            "  hint: put a `:` and a space after the key"),
        ("%YAML 1.1\n---\na: no", "job.yaml:2:1: YAML directives are not supported\n"
            "  hint: remove the line that starts with `%`; this file is read as YAML 1.2"),
        ("[" * 100, "job.yaml:1:42: is nested more than 40 levels deep"),
        ("{a: " * 5000, "job.yaml:1:165: is nested more than 40 levels deep"),
        ("a: 1\n---\nb: 2", "job.yaml:3:1: a second document begins here\n  hint: keep one document in each file"),
        ("- a\n- b", "job.yaml:1:1: the document is a list, "
            "but must be a mapping with apiVersion, kind, metadata and spec"),
        ("just text", "job.yaml:1:1: the document is 'just text', "
            "but must be a mapping with apiVersion, kind, metadata and spec"),
    ],
)  # fmt: skip
def test_text_is_refused_when_it_is_no_yaml_or_no_mapping(report: Report, text: str, printed: str) -> None:
    assert report(text) == printed


def test_billion_laughs_end_at_once(report: Report) -> None:
    lines = ['a0: &a0 "ha"'] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    printed = report("\n".join(lines))
    assert "is `*a0`, an alias, and aliases are not supported" in printed


def test_only_one_mistake_is_told_when_the_document_is_of_another_kind(report: Report) -> None:
    printed = report(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {}, parallelism: 2}\n"
    )
    assert printed == (
        "job.yaml:2:1: kind is 'Job' of 'batch/v1', but must be TrainingJob of ddpk8s.dev/v1alpha1\n"
        "  hint: a job file begins with apiVersion: ddpk8s.dev/v1alpha1 and kind: TrainingJob; `ddpk8s init` writes one"
    )
