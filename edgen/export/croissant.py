"""Machine-readable description of a data set: croissant.json, in MLCommons Croissant 1.0.

http://mlcommons.org/croissant/1.0, with nodes as in https://docs.mlcommons.org/croissant/docs/mlcroissant/;
known limits use its extension for responsible AI, http://mlcommons.org/croissant/RAI/1.0. Facts that the user
did not state (licence, language, creator, citation, date of publication) are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgen.export.card import Contents, digest_file, list_keywords
from edgen.export.caveats import list_caveats
from edgen.export.format import Format
from edgen.export.rows import SPLITS, ColumnType, DataTable
from edgen.export.shared_options import ExportOptions
from edgen.store.run_reader import RunReader

_MEDIA = {".parquet": "application/x-parquet", ".jsonl": "application/jsonlines"}
_TYPES: Mapping[ColumnType, str] = {
    "string": "sc:Text",
    "int64": "sc:Integer",
    "float64": "sc:Float",
    "bool": "sc:Boolean",
    "labels": "sc:Text",
    "turn_labels": "sc:Text",
}
# Names exactly as in the specification's own examples: readers compare them.
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in ("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty",
        "fileObject",
                     "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5",
                     "parentField",
                     "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate",
                     "separator", "source", "subField", "transform")
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}  # fmt: skip


def describe_files(
    format_: Format, run: RunReader, contents: Contents, options: ExportOptions, folder: Path
) -> dict[str, Any]:
    """Return the description of the files in `folder`, for a format with one table of typed columns."""
    table = contents.tables[0]
    facts = run.describe()
    speakers = " and ".join(f"a {role.name.lower()}" for role in run.space.roles)
    written = " A simulator wrote them, for rehearsal." if run.simulated else ""
    value: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": run.name,
        "description": f"Synthetic conversations of {speakers} about scenarios of the space "
        f"{run.space.name}.{written} {format_.summary}",
        "keywords": list_keywords(format_, run, simulated=run.simulated),
    }
    if options.license is not None:
        value["license"] = options.license
    if options.language is not None:
        value["inLanguage"] = options.language
    value["rai:dataCollection"] = "Language models wrote the conversations; README.md says which, and how."
    value["rai:dataLimitations"] = list(list_caveats(facts, run.job, run.space))
    value["distribution"] = list(_list_distribution(table, contents, folder))
    value["recordSet"] = [_describe_splits(table, contents), _describe_records(table)]
    return value


def _list_distribution(table: DataTable, contents: Contents, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every file with its digest, and the set of all files."""
    patterns = [contents.patterns[table.name, s] for s in SPLITS if (table.name, s) in contents.patterns]
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    media = _MEDIA[paths[0].suffix]
    for path in paths:
        name = path.relative_to(folder).as_posix()
        yield {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "contentSize": f"{path.stat().st_size} B",
            "encodingFormat": media,
            "sha256": digest_file(path),
        }
    yield {
        "@type": "cr:FileSet",
        "@id": "files",
        "name": "files",
        "description": "All files of the data, of both splits.",
        "encodingFormat": media,
        "includes": patterns,
    }


def _describe_splits(table: DataTable, contents: Contents) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "splits",
        "name": "splits",
        "description": "The sides of the split; no scenario is on both.",
        "dataType": "cr:Split",
        "key": {"@id": "splits/name"},
        "field": [{"@type": "cr:Field", "@id": "splits/name", "name": "name", "dataType": "sc:Text"}],
        "data": [{"splits/name": split} for split in SPLITS if (table.name, split) in contents.patterns],
    }


def _describe_records(table: DataTable) -> dict[str, Any]:
    side = {
        **_describe_field("split", "the side of the split, from the file's name"),
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": "files"},
            "extract": {"fileProperty": "fullpath"},
            # Readers also apply this pattern to the names of the splits.
            "transform": {"regex": r"^(?:.*/)?(train|test)(?:-\d{5}-of-\d{5}\.[a-z]+)?$"},
        },
        "references": {"field": {"@id": "splits/name"}},
    }
    return {
        "@type": "cr:RecordSet",
        "@id": "conversations",
        "name": "conversations",
        "description": "A conversation a record.",
        "key": {"@id": "conversations/id"},
        "field": [side, *(_make_field(table, name, kind) for name, kind in table.types.items())],
    }


def _make_field(table: DataTable, name: str, kind: ColumnType) -> dict[str, Any]:
    field = _describe_field(name, table.columns[name])
    if kind != "turns":
        repeated = {"repeated": True} if kind in ("labels", "turn_labels") else {}
        return {**field, "dataType": _TYPES[kind], "source": _describe_source(name), **repeated}
    parts = [
        {
            **_describe_field(f"{name}/{part}", meaning),
            "dataType": "sc:Text",
            "source": _describe_source(name, part),
        }
        for part, meaning in (("role", "who spoke"), ("text", "what was said"))
    ]
    return {**field, "repeated": True, "subField": parts}


def _describe_field(name: str, meaning: str) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": f"conversations/{name}", "name": name, "description": meaning}


def _describe_source(column: str, part: str | None = None) -> dict[str, Any]:
    source: dict[str, Any] = {"fileSet": {"@id": "files"}, "extract": {"column": column}}
    return source if part is None else {**source, "transform": {"jsonPath": part}}
