"""What ends a run is told in sentences, and a sentence ends in a full stop, whoever wrote it."""

import pytest

from fald_hpc import errors, failures
from fald_hpc.cli import main

CLASSES = [errors.UserError, errors.StorageFailure, errors.Stopped, failures.Divergence, failures.GradientFailure]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("words", ["there is no such file", "there is no such file.", "there is no such file. \n"])
def test_a_sentence_ends_in_one_full_stop(kind, words):
    assert str(kind(words)) == "there is no such file."


@pytest.mark.parametrize("kind", CLASSES)
def test_saying_it_again_changes_nothing(kind):
    """Other ranks raise what they were told, and messages are put together from messages."""
    assert str(kind(str(kind("give fewer (3)")))) == "give fewer (3)."
    assert str(kind(f"study.toml: {kind('give fewer')}")) == "study.toml: give fewer."


def test_a_question_keeps_its_mark():
    assert str(errors.UserError("which column is the label?")) == "which column is the label?"


def test_warnings_are_sentences_too(capsys):
    main._show_warning(UserWarning("run longer"), UserWarning, "file.py", 3)
    assert capsys.readouterr().err == "warning: run longer.\n"
