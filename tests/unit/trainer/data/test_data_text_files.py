"""JSON Lines and CSV: what is read, and what is said about files that are not right."""

import gzip

GOOD = '{"text": "好", "label": 1}\n'


def test_jsonl_is_read_with_blank_lines_byte_order_mark_and_other_columns(tmp_path, read):
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"text": "a\\nb", "label": "x", "more": [1]}\r\n\n   \n{"label": 2, "text": ""}'
    )
    found = read(path)
    assert found["texts"] == ["a\nb", ""]
    assert found["labels"] == ["x", 2]
    assert found["places"] == [f"{path}:1", f"{path}:4"]


def test_pairs_are_read_when_the_second_column_is_named(tmp_path, read):
    path = tmp_path / "a.jsonl"
    path.write_text('{"q": "one", "a": "two", "y": true}\n')
    found = read(path, text_column="q", text_pair_column="a", label_column="y")
    assert (found["texts"], found["pairs"], found["labels"]) == (["one"], ["two"], [True])


def test_gzipped_files_are_read(tmp_path, read):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 3))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"text,label\nx,1\n"))
    assert read(tmp_path / "a.jsonl.gz")["texts"] == ["好"] * 3
    assert read(tmp_path / "b.csv.gz")["labels"] == ["1"]


def test_a_file_cut_off_in_its_gzip_stream_is_named(tmp_path, mistake):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 1000)[:-20])
    message, _ = mistake(path)
    assert message.startswith(f"{path}: spec.training.data.train is a damaged gzip file: ")


def test_bad_json_is_named_by_line_and_column(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD + '{"text": "b", "label": }\n', "utf-8")
    assert mistake(path) == (
        f"{path}:2:24: not a line of JSON: expecting value",
        "each line must be one whole JSON object",
    )


def test_a_json_array_is_recognised(tmp_path, mistake):
    for content in ('[\n {"text": "a"}\n]', '[{"text": "a"}]'):
        path = tmp_path / "a.json"
        path.write_text(content)
        message, hint = mistake(path)
        assert message.startswith(f"{path}:1:")
        assert hint.startswith("the file looks like one JSON array; write one object a line: jq -c '.[]' ")


def test_a_line_that_is_no_object_is_named(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD + "null\n", "utf-8")
    message, hint = mistake(path)
    assert message == f"{path}:2: a JSON null where an object is expected"
    assert hint == 'write lines such as {"text": "...", "label": "..."}'


def test_other_encodings_are_named_by_byte_and_line(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    first = GOOD.encode()
    path.write_bytes(first + '{"text": "酒店", "label": 1}\n'.encode("gb18030"))
    message, hint = mistake(path)
    assert message == f"{path}:2: not UTF-8 at byte {len(first) + 10} of the file"
    assert hint == f"convert it: iconv -f GB18030 -t UTF-8 {path} > {tmp_path / 'utf8-a.jsonl'}"


def test_the_byte_offset_counts_the_byte_order_mark(tmp_path, mistake):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbftext\xff,label\n")
    assert mistake(path)[0] == f"{path}:1: not UTF-8 at byte 7 of the file"


def test_utf16_is_recognised(tmp_path, mistake):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\n好,1\n".encode("utf-16"))
    message, hint = mistake(path)
    assert message == f"{path}:1: not UTF-8 at byte 0 of the file"
    assert "iconv -f UTF-16 " in hint


def test_a_text_that_is_null_or_no_text_is_named(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    hint = "leave the sample out, or name another column in spec.training.data.textColumn"
    wrong = {
        "null": "is null",
        "3.5": "is the number 3.5, not a text",
        "true": "is the boolean true, not a text",
        '["a"]': "is a list, not a text",
        '"a\\ud800"': "holds half of a surrogate pair, which is no character",
    }
    for value, fault in wrong.items():
        path.write_text(GOOD + f'\n{{"text": {value}, "label": 1}}\n', "utf-8")
        assert mistake(path) == (f"{path}:3: 'text' {fault}", hint)


def test_a_null_in_the_second_text_names_its_field(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "b": null, "label": 1}\n')
    message, hint = mistake(path, text_pair_column="b")
    assert message == f"{path}:1: 'b' is null"
    assert hint == "leave the sample out, or name another column in spec.training.data.textPairColumn"


def test_a_wrong_column_lists_those_present_and_guesses(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    path.write_text('{"sentence": "a", "labels": 1}\n')
    present = "the columns are: sentence, labels"
    assert mistake(path) == (
        f"{path}:1: no column 'text', which spec.training.data.textColumn names; {present}",
        "set spec.training.data.textColumn to one of them",
    )
    assert mistake(path, text_column="sentence") == (
        f"{path}:1: no column 'label', which spec.training.data.labelColumn names; {present}",
        "did you mean 'labels'?",
    )


def test_a_column_missing_further_down_is_named_by_line(tmp_path, mistake):
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD * 9 + '{"txt": "a", "label": 1}\n', "utf-8")
    assert mistake(path)[0].startswith(f"{path}:10: no column 'text'")


def test_csv_is_read_with_quotes_line_breaks_and_blank_lines(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufefflabel,text\r\npos,"a, ""b""\nc"\r\n\r\nneg,好\r\n'.encode())
    found = read(path)
    assert found["texts"] == ['a, "b"\nc', "好"]
    assert found["labels"] == ["pos", "neg"]
    assert found["places"] == [f"{path}:2", f"{path}:5"]


def test_a_text_longer_than_the_csv_default_is_read(tmp_path, read):
    (tmp_path / "a.csv").write_text(f"text,label\n{'x' * 200_000},1\n")
    assert len(read(tmp_path / "a.csv")["texts"][0]) == 200_000


def test_tsv_is_split_at_tabs(tmp_path, read):
    (tmp_path / "a.tsv").write_text("text\tlabel\na,b\t1\n")
    assert read(tmp_path / "a.tsv")["texts"] == ["a,b"]


def test_a_ragged_row_is_named_by_line(tmp_path, mistake):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines",1\nshort\n')
    assert mistake(path)[0] == f"{path}:4: 1 fields where the header has 2"
    path.write_text("text,label\nhello, world,1\n")
    message, hint = mistake(path)
    assert message == f"{path}:2: 3 fields where the header has 2"
    assert hint.startswith("a text with commas, quotes or line breaks must be quoted")


def test_a_quote_left_open_is_named_by_the_line_where_it_opens(tmp_path, mistake):
    path = tmp_path / "a.csv"
    path.write_text('text,label\nfine,1\n"open,1\nmore,2\n')
    message, hint = mistake(path)
    assert message == f"{path}:3: broken CSV: unexpected end of data"
    assert hint == "look for a quote that is not closed or not doubled"


def test_a_header_with_a_column_twice_is_refused(tmp_path, mistake):
    (tmp_path / "a.csv").write_text("text,label,text\na,1,b\n")
    assert mistake(tmp_path / "a.csv")[0] == f"{tmp_path / 'a.csv'}:1: 2 columns are named 'text'"


def test_files_without_samples_are_named(tmp_path, mistake):
    for name, content in {"a.jsonl": "", "b.jsonl": "\n\n", "c.csv": "", "d.csv": "text,label\n"}.items():
        (tmp_path / name).write_text(content)
        assert (
            mistake(tmp_path / name)[0]
            == f"spec.training.data.train has no samples: {tmp_path / name} is empty"
        )
