"""Bad input is the subject: whatever lies in a table, there is a finding or a clear word, and an end."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.files.acid_files import B0, IDS, insert, write_by_pyorc
from support.validating import check, found, healthy

from acidctl.orc import orc_pb2 as pb
from acidctl.storage.registry import open_location
from acidctl.validation.checks.whole_location import FormatsOfTables, Misplaced
from acidctl.validation.findings import Depth
from acidctl.validation.location import AnyTask, LocationCheck
from acidctl.validation.report import CheckOptions, LocationToCheck, Report

WIDE = f"struct<{IDS},row:struct<a:int,s:string,d:decimal(10,2),l:array<int>,m:map<string,int>,f:double>>"


def wide_file(table: Path, rows: int = 300, **kw: object) -> bytes:
    from decimal import Decimal

    events = [(0, 3, B0, i, 3, (i, f"text {i % 7}", Decimal(i), [i] * (i % 4), {"k": i}, i / 3)) for i in range(rows)]
    return write_by_pyorc(table / "delta_0000003_0000003_0000", events, schema=WIDE, **kw).read_bytes()


def mutations(data: bytes, seed: int, count: int) -> list[bytes]:
    """Bits flipped, pieces cut out, zeroed or doubled, tails of other lengths."""
    source = random.Random(seed)
    found = [b"", data[:1], data[:3], data[:-1], data[len(data) // 2 :], data + data, data[:-200], data[:-1] + b"\xff"]
    while len(found) < count:
        changed = bytearray(data)
        at = source.randrange(len(data))
        kind = source.randrange(6)
        if kind == 0:
            # Most of what can go wrong is in the tail.
            for _ in range(source.randrange(1, 6)):
                place = len(data) - 1 - min(len(data) - 1, int(source.expovariate(1 / 150)))
                changed[place] ^= 1 << source.randrange(8)
        elif kind == 1:
            changed[at] ^= 1 << source.randrange(8)
        elif kind == 2:
            del changed[at : at + source.randrange(1, 400)]
        elif kind == 3:
            length = min(source.randrange(1, 200), len(data) - at)
            changed[at : at + length] = bytes(length)
        elif kind == 4:
            changed[at:at] = source.randbytes(source.randrange(1, 100))
        else:
            changed = changed[:at]
        found.append(bytes(changed))
    return found


def told(report: Report) -> set[str]:
    return {finding.path for finding in report.findings} | {one.path for one in report.unchecked}


@pytest.mark.parametrize("compression", [0, 1])
def test_mutated_files_are_findings_or_well(tmp_path: Path, compression: int) -> None:
    healthy(tmp_path / "t")
    data = wide_file(tmp_path / "t", compression=compression)
    delta = tmp_path / "t/delta_0000003_0000003_0000"
    broken = mutations(data, seed=compression, count=120)
    for place, content in enumerate(broken):
        (delta / f"bucket_{place + 1:05d}").write_bytes(content)
    (report,) = check(tmp_path / "t", processes=2)
    assert report.files == 4 + sum(1 for content in broken if content)
    # Every file but the whole one has a wrong bucket at least, or cannot be read.
    assert told(report) >= {f"{delta.name}/bucket_{place + 1:05d}" for place in range(len(broken))}
    for one in report.unchecked:
        assert one.error.what


def rebuilt(data: bytes, change: Callable[[pb.Footer, pb.PostScript], None]) -> bytes:
    """An uncompressed file with another footer and postscript."""
    length = data[-1]
    postscript = pb.PostScript.FromString(data[-1 - length : -1])
    end = len(data) - 1 - length
    start = end - postscript.footerLength
    footer = pb.Footer.FromString(data[start:end])
    postscript.ClearField("footerLength")
    change(footer, postscript)
    raw = footer.SerializeToString()
    if not postscript.HasField("footerLength"):
        postscript.footerLength = len(raw)
    tail = postscript.SerializeToString()
    return data[:start] + raw + tail + bytes([len(tail)])


EVIL = "\x1b[31m\u202eevil\x07\n"


def absurd(name: str, footer: pb.Footer, postscript: pb.PostScript) -> None:
    stripe = footer.stripes[0]
    if name == "rows":
        stripe.numberOfRows = footer.numberOfRows = 2**31 - 1
    elif name == "more rows":
        stripe.numberOfRows = footer.numberOfRows = 2**63 - 1
    elif name == "data length":
        stripe.dataLength = 2**62
    elif name == "offset":
        stripe.offset = 2**64 - 1
    elif name == "stripe footer":
        stripe.footerLength = 0
    elif name == "footer length":
        postscript.footerLength = 2**63
    elif name == "metadata length":
        postscript.metadataLength = 2**63
    elif name == "block size":
        postscript.compressionBlockSize = 2**62
    elif name == "codec":
        postscript.compression = 1
    elif name == "many types":
        footer.types.extend([footer.types[1]] * 300_000)
    elif name == "cycle":
        footer.types[6].subtypes[0] = 0
    elif name == "deep":
        for _ in range(5000):
            last = footer.types.add(kind=pb.Type.LIST)
            last.subtypes.append(len(footer.types))
        footer.types.add(kind=pb.Type.INT)
    elif name == "large names":
        footer.types[6].fieldNames[0] = EVIL * 1_000_000
    elif name == "large key index":
        entry = next(item for item in footer.metadata if item.name == "hive.acid.key.index")
        entry.value = b";" * 10_000_000
    elif name == "digits":
        entry = next(item for item in footer.metadata if item.name == "hive.acid.stats")
        entry.value = b"9" * 1_000_000 + b",0,0"
    elif name == "stride":
        footer.rowIndexStride = 1
    elif name == "no statistics":
        del footer.statistics[:]
    else:
        raise AssertionError(name)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name",
    [
        "rows", "more rows", "data length", "offset", "stripe footer", "footer length", "metadata length", "block size",
        "codec", "many types", "cycle", "deep", "large names", "large key index", "digits", "stride", "no statistics",
    ],
)  # fmt: skip
def test_absurd_tails_are_findings(tmp_path: Path, name: str) -> None:
    healthy(tmp_path / "t")
    data = wide_file(tmp_path / "t", compression=0)
    path = tmp_path / "t/delta_0000003_0000003_0000/bucket_00000"
    path.write_bytes(rebuilt(data, lambda footer, postscript: absurd(name, footer, postscript)))
    (report,) = check(tmp_path / "t", processes=1)
    if name not in ("stride", "no statistics", "block size", "large names"):
        assert f"{path.parent.name}/{path.name}" in told(report)
    assert all(len(finding.message) < 2000 for finding in report.findings)


def test_tail_that_unpacks_to_much_more_is_a_finding(tmp_path: Path) -> None:
    """A tail of some kilobytes that unpacks to much more than any tail has."""
    healthy(tmp_path / "t")
    footer = pb.Footer(headerLength=3, contentLength=3, numberOfRows=0)
    footer.metadata.add(name="x", value=bytes(6 << 20))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    chunk = packer.compress(footer.SerializeToString()) + packer.flush()
    chunks = ((len(chunk) << 1).to_bytes(3, "little") + chunk) * 100
    postscript = pb.PostScript(
        footerLength=len(chunks), compression=1, compressionBlockSize=7 << 20, version=[0, 12], magic="ORC"
    ).SerializeToString()
    path = tmp_path / "t/delta_0000002_0000002_0000/bucket_00000"
    path.write_bytes(b"ORC" + chunks + postscript + bytes([len(postscript)]))
    (report,) = check(tmp_path / "t", processes=1)
    assert "V24" in found(report)


def test_odd_things_on_the_disk(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    (table / "loop").symlink_to(table)
    (table / "delta_0000001_0000001_0000" / "up").symlink_to(table)
    (table / "nowhere").symlink_to(table / "missing")
    (table / "delta_0000002_0000002_0000" / "bucket_00001").symlink_to("bucket_00001")
    (table / f"delta_{EVIL.replace('/', '')}").mkdir()
    (table / f"000000_0{EVIL}").write_bytes(b"")
    (report,) = check(table)
    assert {"V1", "V18"} <= found(report)
    assert [one.path for one in report.unchecked] == ["delta_0000002_0000002_0000/bucket_00001", "nowhere"]


def test_a_device_is_no_file(tmp_path: Path) -> None:
    import os

    table = healthy(tmp_path / "t")
    os.mkfifo(table / "delta_0000002_0000002_0000" / "bucket_00001")
    (report,) = check(table, seconds=20)
    assert found(report) == {"V24"}


def test_file_that_vanishes_meanwhile_is_unchecked(tmp_path: Path) -> None:
    table = healthy(tmp_path / "t")
    fs, path = open_location(str(table))
    for depth in (Depth.FOOTERS, Depth.DEEP):
        steps = (
            one := LocationCheck(LocationToCheck(fs, path), CheckOptions(depth), Misplaced(), FormatsOfTables())
        ).steps()
        tasks = next(steps)
        gone = table / "delta_0000001_0000001_0000"
        kept = gone.rename(tmp_path / "aside")
        with suppress(StopIteration):
            while True:
                tasks = steps.send([result_of(task) for task in tasks])
        kept.rename(gone)
        report = one.report()
        assert {item.path.partition("/")[0] for item in report.unchecked} == {gone.name}
        assert {item.error.code for item in report.unchecked} == {"not-found"}
        assert found(report) <= {"V33 warning"}


def result_of(task: AnyTask) -> object:
    try:
        return task.run(lambda: None)
    except Exception as error:  # noqa: BLE001
        return error


def test_a_location_that_cannot_be_listed(tmp_path: Path) -> None:
    fs, path = open_location(str(tmp_path / "missing"))
    one = LocationCheck(LocationToCheck(fs, path), CheckOptions(Depth.DEEP), Misplaced(), FormatsOfTables())
    assert list(one.steps()) == []
    assert one.report().unchecked[0].error.code == "not-found"


def test_location_without_enough_history_is_unchecked(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_by_pyorc(table / "base_0000010_v0000050", [insert(1, 0)])
    (report,) = check(table, write_ids="t:12:8:8:")
    assert [one.error.code for one in report.unchecked] == ["history"]


def test_damaged_files_of_the_orc_corpus_are_findings(shared_data: Path) -> None:
    corpus = shared_data / "orc-corpus" / "apache-orc"
    (report,) = [one for one in check(corpus, processes=2) if one.location == str(corpus)]
    broken = {finding.path for finding in report.findings if finding.severity == "error"}
    assert broken == {
        *(f"corrupt/{path.name}" for path in (corpus / "corrupt").iterdir()),
        "TestOrcFile.testTimestamp.orc",
        "TestOrcFile.testWithoutCompressionBlockSize.orc",
    }
    assert {one.path for one in report.unchecked} == {
        "encrypted/sample1.orc", "encrypted/sample2.orc", "TestVectorOrcFile.testLzo.orc",
    }  # fmt: skip


def test_endless_names_are_cut_in_messages(tmp_path: Path) -> None:
    """A store may allow what no disk does; what is told stays readable."""
    table = healthy(tmp_path / "t")
    fs, root = open_location("memory://endless/t")
    for path in table.rglob("*/*"):
        fs.write_bytes(f"{root}/{path.relative_to(table)}", path.read_bytes())
    name = EVIL * 200_000
    delta = f"{root}/delta_0000001_0000001_0000"
    for path in (f"{root}/delta_{name}/x", f"{delta}/bucket_00001{name}", f"{delta}/delta_{name}/x", f"{root}/{name}"):
        fs.write_bytes(path, b"garbage")
    (report,) = check("memory://endless/t", readers=("trino",))
    assert {"V1", "V17", "V22", "V24"} <= found(report)
    assert all(len(finding.message) < 2000 for finding in report.findings)
