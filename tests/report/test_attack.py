"""The report on ranks under attack."""

import re

from apexrank import InDegree, PageRank
from apexrank.datasets import make_crawl
from apexrank.graph import attack_ranks
from apexrank.report import build


def test_page(tmp_path):
    web = make_crawl(500, random_state=0).adjacency
    ranks = {"PageRank": PageRank(), "<b>degree": InDegree()}
    study = attack_ranks(web, ranks, attacks=["farm:20", "hijacked:2"], n_targets=4)
    html = build(study, tmp_path / "attack.html", title="Our crawl")
    assert (tmp_path / "attack.html").read_text(encoding="utf-8") == html
    assert "<title>Our crawl</title>" in html
    assert "<b>degree" not in html
    assert "&lt;b&gt;degree" in html
    assert study.verdict in html
    assert "boosters, each of which links only to the target" in html
    shown = re.findall(r'%, var\(--paper\)\)">([\d,]+) <span aria-hidden="true">([✓✗])', html)
    expected = [(f"{round(each.after):,}", "✓" if each.holds else "✗") for each in study.results]
    assert shown == expected
    star = attack_ranks((range(1, 300), [0] * 299), ranks, attacks=["farm:1"])
    assert '<span class="hidden">no gain to prevent</span>' in build(star)
