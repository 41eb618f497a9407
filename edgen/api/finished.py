"""Results of finished runs: a comparison of arms, an exported data set, a report page, a run made from
several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgen.core.errors import UsageError
from edgen.core.registry import find, find_all
from edgen.runtime.control import Control, explain_os_errors
from edgen.runtime.processes import require_several
from edgen.runtime.status import StatusReport, read_run_status
from edgen.store.pairs_file import list_places_of_pairs, require_pair_set
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

if TYPE_CHECKING:
    from edgen.evaluation.comparison.result import ComparisonResult
    from edgen.evaluation.options import CompareOptions
    from edgen.export.format import Format
    from edgen.export.options import OptionValues
    from edgen.export.shared_options import ExportRequest
    from edgen.export.write import Exported
    from edgen.merging.merge import MergeResult
    from edgen.report.page import WrittenReport
    from edgen.selection.options import SelectOptions
    from edgen.store.ledger import Selection


def compare_runs(
    runs: Sequence[Path],
    options: CompareOptions,
    control: Control,
) -> tuple[ComparisonResult, Path | None]:
    """Compare the arms of a run, or runs, on the scenarios that they share; the first is the baseline. A path
    that is not a run is a data set and counts as one arm.

    Return the comparison and its file: `options.output`, or one in the first run's `comparisons/`, None
    without a run. Raises the errors of `evaluation.comparison`.
    """
    from edgen.evaluation.comparison.run_arms import is_run, open_comparison, store

    if not runs:
        raise UsageError(
            "name a run, before the options: edgen compare RUN --arms A B (every word after --arms is an "
            "arm)."
        )
    arms, prompts, roles, output = options.arms, options.prompts, options.roles, options.output
    home = next(filter(is_run, runs), None)
    if roles and all(map(is_run, runs)):
        raise UsageError("--role names a role of a data set, and no data set is compared; leave it out.")
    if home is not None and output is None:
        place = RunFolder(home).comparisons
        if not os.access(place if place.exists() else home, os.W_OK):
            raise UsageError(f"{place}: {home} cannot be written; name a file elsewhere with -o.")
    with (
        control.events.report_stages() as tell,
        open_comparison(runs, arms, prompts=prompts, roles=roles, on_stage=tell) as comparison,
        explain_os_errors(output or runs[0]),
    ):
        return comparison, None if home is None and output is None else store(comparison, home, output)


def list_formats() -> list[dict[str, Any]]:
    """Return every format: its name, a summary, its kind, and further requirements."""
    return [
        {"format": one.name, "summary": one.summary, "of": one.of, "needs": list(one.needs)}
        for one in find_all("format")
    ]


def has_pairs(run: Path) -> bool:
    """Return whether the run has pairs to export. Raises RunError for a folder that is no run."""
    rundir = RunFolder(run).require()
    return rundir.pairs.exists()


def export_run(
    run: Path, name: str, asked: ExportRequest, options: Mapping[str, Any], control: Control
) -> Exported:
    """Write a run in the format `name` to a new folder, with a card. Rows that the format cannot express are
    left out and counted. `options`: the format's options by their names in Python, such as `min_turns_left`;
    None if not given. Several workers write the same bytes as one.

    Raises UsageError for unsupported or contradictory options, ShortError if no row is left, and the errors
    of reading.
    """
    from edgen.export.ranges import require_ranges
    from edgen.export.shared_options import LayerOptions, PairSetOptions
    from edgen.export.write import check_target, export

    output, workers, on = asked.output, asked.workers, asked.on
    if on is not None:
        require_several(on, workers)
    format_ = find("format", name)
    if output is None:
        raise UsageError(f"-o is missing: name the folder to make, such as -o exports/{format_.name}.")
    read = format_.read(options)
    check_target(output)
    if workers > 1:
        require_ranges(format_, read)
    pairs = read.of(PairSetOptions)
    if pairs.others:
        exported = _export_between(run, format_, output, read)
    else:
        _refer_to_others(RunFolder(run), format_)
        with RunFolder(run).lock_for_reading(), RunReader(run, read.of(LayerOptions).layer) as reader:
            if pairs.pairs is not None:
                require_pair_set(reader.rundir, pairs.pairs)
            exported = export(reader, format_, output, read, workers, on)
    for remark in exported.remarks:
        control.note(remark)
    return exported


def _export_between(run: Path, format_: Format, output: Path, options: OptionValues) -> Exported:
    """Write the pairs of a run with others. Raises UsageError if there are none."""
    from edgen.asking.ledger_paths import open_for_reading
    from edgen.export.shared_options import PairSetOptions
    from edgen.export.write import export

    pairs = options.of(PairSetOptions)
    with open_for_reading(run, pairs.others) as reader:
        if pairs.pairs is not None:
            require_pair_set(reader.rundir, pairs.pairs)
        if not reader.rundir.pairs.exists():
            others = " ".join(pairs.against)
            raise UsageError(
                f"{run}: there are no pairs with these runs; `edgen pairs {run} {others} --signal oracle` "
                "makes them."
            )
        return export(reader, format_, output, options)


def _refer_to_others(rundir: RunFolder, format_: Format) -> None:
    """Raise UsageError if a run has only pairs with other runs."""
    if "pairs" in format_.needs and not rundir.pairs.exists():
        between = [
            place.pairs_folder.name for place in list_places_of_pairs(rundir)[1:] if place.pairs.exists()
        ]
        if not between:
            return
        folders = ", ".join(between)
        raise UsageError(
            f"{rundir.path}: this run has pairs with other runs only ({folders}); name these with --against "
            "RUN, in the same order as for `edgen pairs`."
        )


def write_report(run: Path, control: Control, output: Path | None = None) -> WrittenReport:
    """Write one self-contained HTML file about a run, in place of an earlier one.

    Notes name the parts of the run that it does not cover. Measures of the run's own job are included if the
    user agrees to run their files. Raises the errors of reading the run, and UsageError for a file that
    cannot be written.
    """
    from edgen.evaluation.measure_files import load_run_measures
    from edgen.report.canvas import has_font_list
    from edgen.report.page import write_report as write

    if not has_font_list():
        control.note("matplotlib lists the fonts of this machine, once; this can take a minute.")
    load_run_measures([run], control)
    with control.events.report_stages() as tell:
        written = write(run, output, progress=tell)
    if not written.accepted:
        control.note(
            f"no conversation was accepted ({written.refused:,} were rejected or failed), so the report has "
            "no measures; it lists the reasons."
        )
    if written.pending:
        pending = "1 conversation is" if written.pending == 1 else f"{written.pending:,} conversations are"
        control.note(f"{pending} pending; the report covers the finished ones.")
    if written.missing:
        missing = ", ".join(written.missing)
        control.note(f"no conversation of {missing} has ended; the report covers the other arms.")
    if written.uncompared:
        control.note(f"the arms are not compared: {written.uncompared}")
    if written.unread_pairs:
        control.note(f"the report shows no pairs: {written.unread_pairs}")
    return written


def select_run(
    run: Path, output: Path, options: SelectOptions, control: Control
) -> tuple[StatusReport, Selection]:
    """Make a new run, in the folder `output`, of chosen conversations of a run, which stays unchanged.

    Return the new run's status, and what each clause removed. Raises the errors of `selection.select`.
    """
    from edgen.selection.select import select

    with control.events.report_stages() as tell, explain_os_errors(output):
        selection = select(run, output, options, tell, control.note)
    return read_run_status(RunFolder(output)), selection


def merge_runs(runs: Sequence[Path], output: Path, control: Control) -> tuple[StatusReport, MergeResult]:
    """Merge runs into a new run in the folder `output`. The runs stay unchanged, and nothing is dropped.

    Return the new run's status, and the merged content. Raises the errors of `merging.merge`.
    """
    from edgen.merging.merge import merge

    with control.events.report_stages() as tell, explain_os_errors(output):
        merged = merge(runs, output, tell)
    for sentence in merged.notes:
        control.note(sentence)
    return read_run_status(RunFolder(output)), merged
