"""The page of a running command: its progress is available before its result."""

import msgspec
import pytest

from bayplan.ui import answers
from bayplan.ui.subjects import NotReady
from bayplan.ui.work import WorkSubject, work_page
from tests.ui.live_client import get


def test_the_progress_of_a_command_is_on_the_page() -> None:
    with work_page("quickstart", "The simulation is running.", "pod") as (page, work):
        work.update(3, 10)
        status, _, body = get(f"{page.url}api/sources")
        [source] = msgspec.json.decode(body, type=list[answers.Source])
        assert (status, source.kind, source.phase) == (200, "work", "loading")
        assert (source.done_count, source.total_count, source.unit) == (3, 10, "pod")
        assert source.doing == "The simulation is running."
        assert get(f"{page.url}api/overview")[0] == 503
        assert get(f"{page.url}api/experiment")[0] == 400


def test_unfinished_work_has_no_timeline() -> None:
    with pytest.raises(NotReady):
        _ = WorkSubject("quickstart", "The simulation is running.", "pod").timeline
