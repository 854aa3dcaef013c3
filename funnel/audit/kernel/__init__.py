"""The part of the audit that must be trusted: it imports the standard library, numpy and `funnel.format`.

Read `check` first, for it lists every claim; each claim is a function of its name, whose first line says what is
claimed. It verifies and never searches: where a proof needs numbers that somebody had to look for, a file of the
release holds them. What it rests on:

    check, verdict    which claims there are; what is said of one: passed, failed, or not looked at and why
    claims            files, promise, counts, leakage, ledger: the claims that compare what other modules find
    drawing           Σ_y K = N, drawn is released, nothing impossible; Theorem 2 and Lemma 4: chances kept, blocks
                      independent, as far as independent draws stray, whatever their number
    opened            bytes, records and hashes: canonical JSON is one text for one content; each file is read once
    records           weights over labels, counts, the records drawn for, what was drawn: arrays that fit each other
    exact             whole numbers and fractions; e and ln from a named side (`decimal` rounds them correctly)
    channel           P(y|s) = Σ_x P(x|s) Q(y|s,x) of all blocks together, and given what somebody may know beforehand;
                      Theorem 1: which sets tell most
    notions           each notion as its definition reads: [DS] Definitions 1 to 3, [RLDP] Definition 1, [PML]
    robust            Lemmas 1 to 3: one inequality for each output and two secrets, in all distributions near enough

What a file has to say by itself its record in `funnel.format` says: no part of it is read that its schema refuses.

[DS] Lopuhaä-Zwakenberg, Tong, Škorić, Data Sanitisation Protocols for the Privacy Funnel with Differential Privacy
Guarantees. [RLDP] Lopuhaä-Zwakenberg, Goseling, Mechanisms for Robust Local Differential Privacy. [PML] Saeidian,
Cervia, Oechtering, Skoglund, Pointwise Maximal Leakage.
"""
