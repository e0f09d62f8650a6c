"""The parts of a document are found, and nothing else."""

from tests.documents.reading import excerpts_of, make_targets

TEXT = """# A

Say `bayplan config graph
FILE`, or `pip`:

    bayplan simulate a.yaml --seed 7   # a remark
    kubectl get pods
    .venv/bin/bayplan capture -o x && bayplan why default/p \\
        --run x

```python
x = 1
```

```
    bayplan is not run here
```
"""


def test_code_commands_and_mentions_are_read_in_order() -> None:
    assert [(excerpt.kind, excerpt.line) for excerpt in excerpts_of(TEXT)] == [
        ("mention", 3),
        ("command", 6),
        ("other", 7),
        ("command", 8),
        ("command", 8),
        ("python", 11),
    ]


def test_a_console_block_is_read_unchanged() -> None:
    (excerpt,) = excerpts_of("Look:\n\n```console\n$ bayplan plugins\nNodeName\n```\n")
    assert (excerpt.kind, excerpt.text, excerpt.line) == (
        "console",
        "$ bayplan plugins\nNodeName\n",
        3,
    )


def test_commands_in_a_list_and_in_a_block_of_a_shell_are_read() -> None:
    text = "3. Check:\n\n        bayplan plugins\n\n```sh\nmake sim SEED=7\nbayplan demo\n```\n"
    assert [(excerpt.text, excerpt.line) for excerpt in excerpts_of(text)] == [
        ("bayplan plugins", 3),
        ("make sim SEED=7", 6),
        ("bayplan demo", 7),
    ]
    assert make_targets(text) == ["sim"]


def test_the_words_of_a_command_exclude_its_comment_and_the_program() -> None:
    commands = [
        excerpt.words for excerpt in excerpts_of(TEXT) if excerpt.kind in ("command", "mention")
    ]
    assert commands == [
        ["config", "graph", "FILE"],
        ["simulate", "a.yaml", "--seed", "7"],
        ["capture", "-o", "x"],
        ["why", "default/p", "--run", "x"],
    ]


def test_the_text_of_a_command_excludes_the_folder_of_the_program_and_blanks() -> None:
    first = "    .venv/bin/bayplan why  a \\\n      --run x   # why\n"
    text = f"Run:\n\n{first}    kubectl bayplan fit\n"
    assert [excerpt.command for excerpt in excerpts_of(text)] == [
        "bayplan why a --run x",
        "bayplan fit",
    ]
