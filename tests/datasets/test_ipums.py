"""Test orders of IPUMS extracts and the parsing of synthetic extracts."""

import gzip

import ipumspy
import polars as pl
import pytest

from private_consensus.common.secrets import IPUMS_KEY
from private_consensus.reproduction.data import downloads

VARIABLE = """
<var ID="{name}" name="{name}" intrvl="discrete" dcml="0">
<location StartPos="{start}" EndPos="{end}" width="{width}"/>
<labl>{name}</labl><txt>{name}</txt><concept>c</concept>
<varFormat type="numeric" schema="other"/></var>"""

CODEBOOK = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5">
<stdyDscr><citation><serStmt><serName abbr="usa">USA</serName><serInfo>doi</serInfo></serStmt>
</citation><dataAccs><useStmt><conditions>c</conditions><citReq>c</citReq></useStmt></dataAccs>
</stdyDscr>
<fileDscr><fileTxt><fileName>x.dat</fileName><fileCont>c</fileCont>
<fileStrc type="rectangular"/><fileType charset="iso-8859-1">ASCII</fileType>
<format>fixed length fields</format><filePlac>p</filePlac></fileTxt></fileDscr>
<dataDscr>{variables}</dataDscr></codeBook>"""

FIELDS = (("AGE", 3), ("SEX", 1), ("INCTOT", 7))
RECORDS = ((34, 1, 25_001), (7, 2, 9_999_999), (28, 2, -500))


def deliver(folder) -> None:
    variables, start = "", 1
    for name, width in FIELDS:
        variables += VARIABLE.format(name=name, start=start, end=start + width - 1, width=width)
        start += width
    (folder / "x.xml").write_text(CODEBOOK.format(variables=variables))
    lines = [
        "".join(str(v).zfill(w) for v, (_, w) in zip(record, FIELDS, strict=True))
        for record in RECORDS
    ]
    (folder / "x.dat.gz").write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))


@pytest.mark.filterwarnings("ignore::ipumspy.readers.CitationWarning")
def test_an_extract_is_parsed_with_its_codebook(tmp_path):
    deliver(tmp_path)
    table = downloads.read_extract(tmp_path, ["INCTOT", "AGE"])
    assert table.columns == ["INCTOT", "AGE"]
    assert table.rows() == [(r[2], r[0]) for r in RECORDS]


class Client:
    """Replacement of the IPUMS client without network access."""

    fails = False

    def __init__(self, key, base_url):
        assert key == "secret" and base_url.startswith("https://")

    def submit_extract(self, extract):
        if self.fails:
            raise PermissionError("The provided API key is not valid")
        built = extract.build()
        assert (built["collection"], list(built["samples"])) == ("ipumsi", ["br2000a"])
        assert list(built["variables"]) == NAMES
        return extract

    def wait_for_extract(self, extract, timeout):
        assert timeout > 0

    def download_extract(self, extract, download_dir):
        deliver(download_dir)


NAMES = [name for name, _ in FIELDS]
REQUEST = {"collection": "ipumsi", "sample": "br2000a", "variables": NAMES, "wait": 5}


@pytest.mark.filterwarnings("ignore::ipumspy.readers.CitationWarning")
def test_an_extract_is_downloaded_once(monkeypatch, tmp_path):
    monkeypatch.setenv(IPUMS_KEY, "secret")
    monkeypatch.setattr(ipumspy, "IpumsApiClient", Client)
    monkeypatch.setattr(downloads, "require_reachable", lambda *_: None)
    for fails in (False, True):
        monkeypatch.setattr(Client, "fails", fails)
        downloads.download_extract(tmp_path, "https://api.example.org", REQUEST, 1.0)
        assert pl.read_parquet(tmp_path / downloads.EXTRACT).rows() == list(RECORDS)
