"""What the promise does not cover, said as plainly as the promise."""

from __future__ import annotations

from funnel.report.case import Case
from funnel.report.figures import counted, factor_text, percent_text, power_text, share_text
from funnel.report.wording import listed


def limits(case: Case, untouched: float) -> list[dict[str, str]]:
    """Title and text of each thing that is not promised, or that the promise rests on."""
    pairs = [
        _public_values(case, untouched), _singling_out(case), _other_tables(case), _outside_knowledge(case),
        _several_rows(case), _several_releases(case), _estimation(case), _small_groups(case), _key(case),
    ]  # fmt: skip
    return [{"title": title, "text": text} for title, text in pairs if text]


def _public_values(case: Case, untouched: float) -> tuple[str, str]:
    shown = (
        "They are released as they are: all released values are the true ones."
        if case.all_as_is
        else "A record’s released values are expected to be exactly its true ones in "
        f"{share_text(untouched)} of records."
    )
    return (
        f"The true {case.public}",
        f"The promise protects {case.secret.name}, not the released columns themselves. {shown}",
    )


def _singling_out(case: Case) -> tuple[str, str]:
    return (
        "Being recognised",
        "A person may still be recognised in the table, by themselves or by someone who knows them, and "
        "rare released values make that easier. A record that is recognised shows its released values and "
        f"no more: what they say about {case.secret.name} is what the promise bounds; what they say about "
        "the released columns is not bounded.",
    )


def _other_tables(case: Case) -> tuple[str, str]:
    return (
        "Other tables and other columns",
        "The promise is about this table alone. Someone who also has other data on the same people can "
        f"learn more about {case.secret.name} from that data, and more again by putting the two together.",
    )


def _outside_knowledge(case: Case) -> tuple[str, str]:
    secret = case.secret.name
    if not case.epsilon:
        text = _perfect(case)
    elif case.notion.measure == "ldp":
        text = (
            f"The promise holds whatever was believed about the person’s {secret}. It does not hold as "
            "stated for someone who knows more about the person’s true public values than their "
            f"distribution among people with the same {secret}: that knowledge changes how much the "
            "released values say."
        )
    else:
        text = (
            "The promise is about someone who starts from the frequencies in the table. Someone who "
            "already knows more about the person (that a true public value is one of a few, say, or another "
            "column) starts from another belief, and for them the change may be larger. For someone who differs "
            f"only in how likely they hold each {secret}, and takes the true values to be distributed for each "
            "as in the table, it is at most the square of the factor promised: "
            f"{factor_text(2 * case.epsilon)}. Nor does the promise bound what the true values of {case.public} "
            f"say about {secret} to someone who knows them already."
        )
    return "Knowledge from elsewhere", text


def _perfect(case: Case) -> str:
    """Independence of S and Y is a fact about p(x|s), whatever the p(s); more knowledge of x undoes it."""
    secret = case.secret.name
    return (
        f"With the table’s distribution of {secret} and the true values, the released values are independent of "
        f"{secret}: they have the same chances for each {secret}. So someone with any other belief about "
        f"{secret} alone, who takes the true values to be distributed for each {secret} as in the table, learns "
        "nothing either. Someone who knows more about the person’s true public values than that (that one of "
        "them is one of a few, say, or another column that goes with them) may learn something. Nor does the "
        f"promise bound what the true values of {case.public} say about {secret} to someone who knows them already."
    )


def _several_rows(_: Case) -> tuple[str, str]:
    return (
        "Several records of one person, and households",
        "The promise is for each record by itself. Someone who sees several records of one person, or of "
        "persons whose secrets go together, such as the members of a household, can learn more than it says.",
    )


def _several_releases(case: Case) -> tuple[str, str]:
    common = (
        "Leakage about a secret does not add up: two releases that each tell nothing can together tell "
        "everything that the true values tell. It has to be measured on the releases together"
    )
    if case.all_as_is:
        text = (
            "The true values are released as they are: publishing values that have not changed adds nothing, but "
            f"every change shows. {common}. The publisher’s ledger lists all releases."
        )
    elif case.manifest["draws"]["kind"] == "permanent":
        text = (
            "The draws are permanent: under the same key and protocol a record whose true values have not "
            "changed gives the same answer every time, so publishing again adds nothing. A new key does add, and "
            f"so does a new protocol, which any change of the counts may bring. {common}. The publisher’s ledger "
            "lists all releases."
        )
    else:
        text = (
            "The draws are fresh: every release draws anew, so each further release about the same people "
            f"tells more than this report says. {common}. The publisher’s ledger lists all releases."
        )
    return "Several releases", text


def _estimation(case: Case) -> tuple[str, str]:
    """Section on what the protocol itself discloses: which defence this release uses."""
    bits = sorted({protocol.bits for protocol in case.protocols} - {0})
    fine = (
        f"the published chances are multiples of {listed([f'1/{power_text(b)}' for b in bits])}, no finer"
        if bits
        else "the published chances are all 0 or 1"
    )
    floor = f"every true value of {case.public} had to have at least {counted(case.minimum, 'record')}"
    if case.manifest["estimate"].get("kind", "counts") == "private":
        text = (
            "The chances of drawing each value were computed from counts to which noise had been added, so "
            f"publishing them tells little about any one person; besides, {floor} and {fine}."
        )
    else:
        text = (
            "The promise takes the distribution of the table as known to everyone. It was counted from "
            "these very records, and the published chances depend on it, so they say something about the "
            f"counts behind them. The defence used here is support and precision: {floor}, and {fine}. The "
            f"table of counts is not published, and the published report rounds shares to steps of "
            f"{percent_text(case.published_step)}; but its figures, and those in release.json, are computed from "
            "the counts, and in a small table they can, taken together, narrow the counts down. The figures "
            "hold for the distribution as counted; for the population from which the records come they carry "
            "the usual error of an estimate."
        )
    if any(protocol.reads_secret for protocol in case.protocols):
        text += (
            f" This mechanism also reads {case.secret.name} when it draws: its published chances contain, to "
            f"their full precision, how the released values are distributed for each {case.secret.name}."
        )
    return "The distribution behind the promise", text


def _small_groups(case: Case) -> tuple[str, str]:
    text = (
        f"A value of {case.secret.name} that does not occur in the table is not covered. For one that few "
        "people have, the bound holds in exactly the same way, but the frequencies on which it rests are "
        "those of those few."
    )
    if case.published:
        text += f" This report gives no figure for groups of fewer than {counted(case.minimum, 'record')}."
    return "People in small groups", text


def _key(case: Case) -> tuple[str, str]:
    if case.all_as_is or not case.manifest["draws"].get("key_fingerprint"):
        return "The key", ""
    return (
        "The key",
        "Whoever has the key and knows the identifier of a record can narrow down its true values. The "
        "promise holds against everyone else. The fingerprint in this report identifies the key without "
        "revealing it.",
    )
