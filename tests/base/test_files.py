"""Files are written whole or not at all; what is no file is written to and stays what it is."""

import os
import stat
import threading

import pytest

from orrery.base.files import write_atomically


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_atomically(path, "new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes that have names")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    """As /dev/null and /dev/stdout, which root could replace."""
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, "words")
    reader.join(10)
    assert heard == [b"words"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "x")
