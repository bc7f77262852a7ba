import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notes import DATA, copy_case, make_workspace, open_backend

from lamella.types.memory import MemoryHit, SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.backend import SqliteBackend

any_text = st.text(st.characters(codec=None, exclude_categories=()))


def search(workspace: Path, text: str, **options: object) -> tuple[MemoryHit, ...]:
    return open_backend(workspace).search(SearchQuery(text, **options)).hits  # type: ignore[arg-type]


def queries(case: str) -> list[dict[str, object]]:
    return json.loads((DATA / case / "queries.json").read_text(encoding="utf-8", errors="surrogatepass"))


@pytest.fixture(scope="module")
def case_backends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SqliteBackend]:
    return {
        case: open_backend(copy_case(case, tmp_path_factory.mktemp(case)))
        for case in ("K88", "K89", "K91", "K96", "K98", "golden")
    }


def test_search_works_without_an_index_and_follows_the_files(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "# Zoo\n\n- an okapi came\n- a zebra left\n"})
    backend = open_backend(workspace)
    (hit,) = backend.search(SearchQuery("okapi")).hits
    assert (hit.path, hit.start_line, hit.end_line, hit.source) == ("memory/a.md", 1, 4, "memory")
    assert hit.citation == "memory/a.md#L1-L4"
    (workspace / "memory/a.md").unlink()
    assert backend.search(SearchQuery("okapi")).hits == ()


def test_denser_notes_come_first_with_different_scores(case_backends: dict[str, SqliteBackend]) -> None:
    first, second = case_backends["K88"].search(SearchQuery("gyroscope")).hits
    assert (first.path, second.path) == ("memory/a.md", "memory/b.md")
    assert 1 >= first.score > second.score + 1e-6 > 0


def test_an_exact_identifier_is_first_and_nothing_is_nothing(case_backends: dict[str, SqliteBackend]) -> None:
    assert case_backends["K89"].search(SearchQuery("ZX-48213")).hits[0].path == "MEMORY.md"
    assert case_backends["K89"].search(SearchQuery("qqqq-nothing")).hits == ()


@pytest.mark.parametrize("case", queries("K91"), ids=lambda c: str(c["q"])[:20])
def test_no_character_of_a_question_has_a_meaning(
    case_backends: dict[str, SqliteBackend], case: dict[str, object]
) -> None:
    hits = case_backends["K91"].search(SearchQuery(str(case["q"]))).hits
    if case["hit"] is True:
        assert hits[0].path == "memory/q.md"
    elif case["hit"] is False:
        assert hits == ()


@pytest.mark.parametrize("case", queries("K96"), ids=lambda c: str(c["q"]))
def test_words_inside_a_run_of_characters_are_found(
    case_backends: dict[str, SqliteBackend], case: dict[str, object]
) -> None:
    hits = case_backends["K96"].search(SearchQuery(str(case["q"]))).hits
    assert (hits[0].path if hits else None) == case["path"]


@pytest.mark.parametrize("case", queries("K98"), ids=lambda c: str(c["q"]))
def test_any_word_counts_and_more_words_count_more(
    case_backends: dict[str, SqliteBackend], case: dict[str, object]
) -> None:
    found = [h.path for h in case_backends["K98"].search(SearchQuery(str(case["q"]))).hits]
    assert set(case["must"]) <= set(found)  # type: ignore[call-overload]
    assert not set(case["mustNot"]) & set(found)  # type: ignore[call-overload]
    assert case["first"] in (None, found[0])


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("ALPHA-7781", "MEMORY.md"),
        ("where has the standup moved?", "memory/2026-11-29.md"),
        ("之前讨论的那个 session reset 归档方案", "memory/2026-11-28.md"),
        ("路由器密码", "memory/network.md"),
        ("締め切りはいつですか", "memory/projects/lamina.md"),
        ("배포 일정", "memory/projects/lamina.md"),
        ("дедлайн проекта", "memory/projects/lamina.md"),
        ("memory/network.md", "memory/network.md"),
        ("network.md", "memory/network.md"),
        ("2026-11-28-session-reset", "memory/2026-11-28-session-reset.md"),
        ("zebra crossing", "memory/crlf.md"),
        ("okapi", "memory/bom.md"),
        ("quokka", "memory/longline.md"),
        ("袋熊", "memory/longcjk.md"),
        ("numbat", "memory/emoji.md"),
        ("axolotl", "memory/.hidden.md"),
        ("pangolin", "memory/deep/er/est.md"),
        ("item 077", "memory/many.md"),
        ("192.168.10.2", "memory/network.md"),
        ("ERR_CONN_TIMEOUT", "memory/2026-11-29.md"),
        ("conn timeout", "memory/2026-11-29.md"),
    ],
)
def test_questions_to_the_golden_workspace(case_backends: dict[str, SqliteBackend], question: str, path: str) -> None:
    assert case_backends["golden"].search(SearchQuery(question)).hits[0].path == path


@pytest.mark.parametrize("question", ["capybara", "wombat", "dugong", "platypus", "???", "", "  "])
def test_what_is_no_memory_is_not_found(case_backends: dict[str, SqliteBackend], question: str) -> None:
    found = {h.path for h in case_backends["golden"].search(SearchQuery(question)).hits}
    assert found == set()


def test_lines_and_snippets_are_those_of_the_file(case_backends: dict[str, SqliteBackend], tmp_path: Path) -> None:
    workspace = copy_case("golden", tmp_path)
    for question in ("zebra", "okapi", "item 077 green queue", "回滚步骤", "word0350", "numbat", "billing"):
        for hit in case_backends["golden"].search(SearchQuery(question)).hits:
            lines = (workspace / hit.path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
            cited = "\n".join(lines[hit.start_line - 1 : hit.end_line])
            assert hit.snippet.strip("…") in cited
            assert "\r" not in hit.snippet and "\ufeff" not in hit.snippet
            assert len(hit.snippet) <= 1200


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "\ufeff# Long-term\r\n\r\n- oat milk\r\n- parks at gate 7\r\n"})
    (hit, *_) = search(workspace, "gate 7")
    assert (hit.start_line, hit.end_line, hit.snippet) == (4, 4, "- parks at gate 7")


def test_scores_mean_the_same_in_small_and_large_memories(tmp_path: Path) -> None:
    scores = []
    for number in (1, 12, 1500):
        folder = tmp_path / str(number)
        folder.mkdir()
        filler = "".join(f"# {i}\n- filler about weather and wind\n" for i in range(number))
        workspace = make_workspace(folder, {"MEMORY.md": filler + "# x\n- the okapi likes figs\n"})
        full, half = (search(workspace, q)[0].score for q in ("okapi figs", "okapi spaceship"))
        scores.append((full, half))
    assert all(0.6 < full < 0.85 for full, _ in scores), scores
    assert all(0.4 < half < 0.7 for _, half in scores), scores


def test_a_floor_and_a_number_of_results_are_kept(tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path, {f"memory/{i}.md": "okapi " + ("figs" if i < 3 else "other words") for i in range(20)}
    )
    assert len(search(workspace, "okapi figs", max_results=5)) == 5
    full = search(workspace, "okapi figs", max_results=20, min_score=0.5)
    assert [h.path for h in full] == ["memory/0.md", "memory/1.md", "memory/2.md"]


def test_only_the_sources_asked_for_answer(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    assert len(search(workspace, "okapi", sources=("memory",))) == 1
    assert search(workspace, "okapi", sources=("sessions",)) == ()


def test_results_do_not_repeat_lines(tmp_path: Path) -> None:
    long_line = "okapi " + "filler words here " * 120
    workspace = make_workspace(tmp_path, {"memory/a.md": f"# a\n{long_line}\n"})
    backend = open_backend(workspace, Config(chunk_tokens=64, chunk_overlap=16, embedder="none"))
    hits = backend.search(SearchQuery("okapi filler")).hits
    ranges = [(h.path, h.start_line, h.end_line) for h in hits]
    assert len(ranges) == len(set(ranges))


@given(any_text)
def test_any_question_is_answered(case_backends: dict[str, SqliteBackend], question: str) -> None:
    results = case_backends["K98"].search(SearchQuery(question))
    assert results.degraded is None
    assert all(0 < h.score <= 1 for h in results.hits)
    assert [h.score for h in results.hits] == sorted((h.score for h in results.hits), reverse=True)


def test_neighbouring_hits_are_one_result_with_the_lines_of_both(tmp_path: Path) -> None:
    text = "".join(f"- {'okapi ' if 30 <= i < 50 else ''}entry {i} of a long day\n" for i in range(90))
    (hit,) = search(make_workspace(tmp_path, {"memory/a.md": text}), "okapi")
    assert hit.start_line <= 31 and hit.end_line >= 50
    assert hit.snippet == "\n".join(text.split("\n")[hit.start_line - 1 : hit.end_line])


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("what was said on May 2?", "memory/2026-05-02.md"),
        ("what was said yesterday?", "memory/2026-05-08.md"),
        ("5月2日", "memory/2026-05-02.md"),
    ],
)
def test_a_day_that_is_named_comes_first(tmp_path: Path, question: str, path: str) -> None:
    files = {f"memory/2026-05-{day:02}.md": "something was said, and then more\n" for day in range(1, 13)}
    hits = search(make_workspace(tmp_path, files), question, today="2026-05-09")
    assert hits[0].path == path
    assert 0 < hits[-1].score <= hits[0].score


def test_status_tells_what_is_indexed(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    backend = open_backend(workspace)
    assert (backend.status()["files"], backend.status()["databaseBytes"]) == (0, 0)
    assert not (tmp_path / "state").exists()
    backend.sync()
    status = json.loads(json.dumps(backend.status()))
    assert (status["backend"], status["files"], status["chunks"], status["workspace"]) == (
        "sqlite",
        1,
        1,
        str(workspace),
    )
    backend.close()
    backend.close()


def test_results_that_repeat_others_come_later_when_asked_for(tmp_path: Path) -> None:
    """Two notes say the same, and a third one less well something else of the same thing."""
    files = {
        "memory/a.md": "- okapi okapi okapi diet: leaves\n",
        "memory/b.md": "- okapi okapi diet: leaves\n",
        "memory/c.md": "- an okapi was seen by the river in the long dry summer of that year\n",
    }
    workspace = make_workspace(tmp_path, files)
    plain = open_backend(workspace).search(SearchQuery("okapi")).hits
    assert [hit.path[7] for hit in plain] == ["a", "b", "c"]
    varied = open_backend(workspace, Config(embedder="none", mmr_lambda=0.5)).search(SearchQuery("okapi", explain=True))
    assert [hit.path[7] for hit in varied.hits] == ["a", "c", "b"]
    assert {hit.path: hit.score for hit in varied.hits} == {hit.path: hit.score for hit in plain}
    assert [hit.parts["alike"] for hit in varied.hits if hit.parts] == [0.0, pytest.approx(1 / 16, abs=1e-4), 1.0]


def test_older_notes_come_later_when_asked_for(tmp_path: Path) -> None:
    """The denser note is three half-lives old: it comes second, with its own score, and is not lost to the floor."""
    files = {
        "memory/2025-12-02.md": "- okapi okapi okapi\n",
        "memory/2026-03-02.md": "- the okapi ate leaves\n",
        "memory/notes.md": "- an okapi, undated, among many other things\n",
        **{f"memory/other-{i}.md": "- a zebra\n" for i in range(7)},
    }
    workspace = make_workspace(tmp_path, files)
    asked = SearchQuery("okapi", today="2026-03-02", explain=True)
    plain = open_backend(workspace).search(asked).hits
    assert plain[0].path == "memory/2025-12-02.md"
    aged = open_backend(workspace, Config(embedder="none", half_life_days=30)).search(asked).hits
    assert aged[0].path == "memory/2026-03-02.md"
    assert {h.path: h.parts["age"] for h in aged if h.parts} == {
        "memory/2025-12-02.md": 0.125,
        "memory/2026-03-02.md": 1.0,
        "memory/notes.md": 1.0,
    }
