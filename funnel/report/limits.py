"""What the promise does not cover, said as plainly as the promise."""

from __future__ import annotations

from funnel.report.case import Case
from funnel.report.figures import counted, finite, nats_text, percent_text, power_text, share_text
from funnel.report.noise import is_private, private_estimate, private_promise
from funnel.report.text import listed


def limits(case: Case, untouched: float) -> list[dict[str, str]]:
    """Title and text of each thing that is not promised, or that the promise rests on."""
    pairs = [
        _public_values(case, untouched), _singling_out(case), _other_tables(case), _outside_knowledge(case),
        _several_rows(case), _several_releases(case), _estimation(case), _small_groups(case), _key(case),
    ]  # fmt: skip
    return [{"title": title, "text": text} for title, text in pairs if title and text]


def _public_values(case: Case, untouched: float) -> tuple[str, str]:
    shown = (
        "They are released as they are: all released values are the true ones."
        if case.all_as_is
        else "A record’s released values are expected to be exactly its true ones in "
        f"{share_text(untouched)} of records."
    )
    if case.manifest["notion"] == "ldp-x":
        return (
            f"The true {case.public}",
            f"The promise protects all released columns, each with all the others, up to the factor stated. {shown}",
        )
    which = "other released columns" if case.secret_released else "released columns themselves"
    return (
        f"The true {case.terms.others}" if case.terms.others else "",
        f"The promise protects {case.terms.secret}, not the {which}. {shown}",
    )


def _singling_out(case: Case) -> tuple[str, str]:
    return (
        "Being recognised",
        "A person may still be recognised in the table, by themselves or by someone who knows them, and "
        "rare released values make that easier. A record that is recognised shows its released values and "
        f"no more: {case.notion.recognised(case.terms)}",
    )


def _other_tables(case: Case) -> tuple[str, str]:
    return (
        "Other tables and other columns",
        "The promise is about this table alone. Someone who also has other data on the same people can "
        f"learn more about {case.terms.secret} from that data, and more again by putting the two together.",
    )


def _outside_knowledge(case: Case) -> tuple[str, str]:
    return "Knowledge from elsewhere", case.notion.elsewhere(case.terms)


def _several_rows(case: Case) -> tuple[str, str]:
    single = (
        "for each record by itself" if case.notion.worst_case else "about one record at a time, on average"
    )
    return (
        "Several records of one person, and households",
        f"The promise is {single}. Someone who sees several records of one person, or of "
        "persons whose secrets go together, such as the members of a household, can learn more than it says.",
    )


def _several_releases(case: Case) -> tuple[str, str]:
    common = (
        "Under this notion the bounds of several releases add up: together they keep the sum of their ε"
        if case.manifest["notion"] == "ldp-x"
        else "Leakage about a secret does not add up: two releases that each tell nothing can together tell "
        "everything that the true values tell. It has to be measured on the releases together"
    )
    if case.certain and not case.all_as_is:
        text = (
            "Nothing is left to chance: publishing values that have not changed adds nothing under the same protocol. "
            "A new protocol, which any change of the counts may bring, does add, and changes of the values show. "
            f"{common}. The publisher’s ledger lists all releases."
        )
    elif case.all_as_is:
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
    return "Several releases", text + _so_far(case)


_HOW = {
    "exact": "measured exactly",
    "ceiling": "bounded by what the true values tell",
    "sum": "bounded by the sum of what each can add",
}


def _so_far(case: Case) -> str:
    """The composed leakage, where this is not the first release."""
    composed = case.manifest.get("composed")
    if not composed:
        return ""
    total = finite(composed["leakage"])
    found = "has no finite bound" if total is None else f"is at most {nats_text(total)} nats"
    return (
        f" What the {composed['releases']:,} releases so far tell together about a person whose values stay the same "
        f"{found} ({_HOW[composed['how']]})."
    )


def _estimation(case: Case) -> tuple[str, str]:
    """Section on what the protocol itself discloses: which defence this release uses."""
    bits = sorted({protocol.bits for protocol in case.protocols} - {0})
    fine = (
        f"the published chances are multiples of {listed([f'1/{power_text(b)}' for b in bits])}, no finer"
        if bits
        else "the published chances are all 0 or 1"
    )
    floor = f"every true value of {case.public} had to have at least {counted(case.minimum, 'record')}"
    if locked := case.manifest.get("locked"):
        floor += f" on the night that the protocol was fixed ({locked['made']}, in a lock)"
    if is_private(case):
        text = (
            f"{private_estimate(case)} Besides, {floor}, noise included, and {fine}. {private_promise(case)}"
        )
    else:
        text = (
            f"{_counted(case)} The defence used here is support and precision: {floor}, and {fine}. The "
            "table of counts is not published, and the published report rounds shares to steps of "
            f"{percent_text(case.published_step)}; but its figures, and those in release.json, are computed from "
            f"the counts, and in a small table they can, taken together, narrow the counts down. {_population(case)}"
        )
    if any(protocol.reads_secret for protocol in case.protocols):
        noisy = ", up to the noise" if is_private(case) else ""
        text += (
            f" This mechanism also reads {case.terms.secret} when it draws: its published chances contain, to "
            f"their full precision, how the released values are distributed for each {case.terms.secret}{noisy}."
        )
    return "The distribution behind the promise", text


def _counted(case: Case) -> str:
    """What the promise takes as known, and what the protocol is made of."""
    if _without_counts(case):
        return (
            f"{_basis(case)} The published chances depend on ε and the number of values, not on the counts."
        )
    return (
        f"{_basis(case)} The published chances depend on it, and it was counted from these very records"
        f"{_earlier(case)}, so they say something about the counts behind them."
    )


def _earlier(case: Case) -> str:
    """Under a lock the chances are those of another night, and stay so."""
    return " as they were when the protocol was fixed" if case.manifest.get("locked") else ""


def _without_counts(case: Case) -> bool:
    """Whether the protocol is the same for every table of these values."""
    used = case.manifest["mechanism"]
    plain = case.manifest["notion"] == "ldp-x" and used in {"randomised-response", "unary-encoding"}
    return plain or used == "secret-randomised-response"


def _basis(case: Case) -> str:
    if case.manifest["notion"] == "ldp-x":
        return "The promise does not rest on the distribution of the table."
    if case.manifest["notion"] == "rldp":
        return "The promise is built around the distribution of the table."
    return "The promise takes the distribution of the table as known to everyone."


def _population(case: Case) -> str:
    """Whether what is said holds beyond the counts."""
    if case.manifest["notion"] == "ldp-x":
        return "The promise holds whatever the distribution; the figures measured hold for the one counted."
    if case.manifest["notion"] == "rldp":
        return (
            "The promise holds for every distribution of the uncertainty set; the beliefs and shares in this report "
            "are those under the distribution as counted."
        )
    return (
        "The figures hold for the distribution as counted; for the population from which the records come they carry "
        "the usual error of an estimate."
    )


def _small_groups(case: Case) -> tuple[str, str]:
    text = _rare(case)
    if case.published:
        text += f" This report gives no figure for groups of fewer than {counted(case.minimum, 'record')}."
    return "People in small groups", text


def _rare(case: Case) -> str:
    covered = "the policy does not list" if is_private(case) else "does not occur in the table"
    if not case.notion.worst_case:
        return (
            "People with rare values weigh little in an average: the release can tell much, or everything, about "
            f"the {case.terms.secret} of a few people and keep the promise. A value of {case.terms.secret} that "
            f"{covered} is not covered."
        )
    if case.manifest["notion"] == "ldp-x":
        return "The bound holds for every true value in exactly the same way, however few people have it."
    if is_private(case) and case.manifest["notion"] != "rldp":
        return (
            f"A value of {case.terms.secret} that {covered} is not covered. Where few people have one, the noise may "
            "be larger than their number: the promise, which is about the noisy counts, then says little about them."
        )
    return (
        f"A value of {case.terms.secret} that {covered} is not covered. For one that few "
        "people have, the bound holds in exactly the same way, but the frequencies on which it rests are "
        "those of those few."
    )


def _key(case: Case) -> tuple[str, str]:
    if case.certain or not case.manifest["draws"].get("key_fingerprint"):
        return "The key", ""
    return (
        "The key",
        "Whoever has the key and knows the identifier of a record can narrow down its true values. The "
        "promise holds against everyone else. The fingerprint in this report identifies the key without "
        "revealing it.",
    )
