"""The part of the audit that must be trusted: it imports the standard library, numpy and `funnel.format`.

Read `check` first, for it lists every claim; each claim is a function of its name, whose first line says what is
claimed. It verifies and never searches: where a proof needs numbers that somebody had to look for, a file of the
release holds them. What it rests on:

    claims, drawing   what is compared; Theorem 2 and Lemma 4: how far independent draws stray, whatever their number
    opened, records   files, each read once, as arrays that fit each other: W[y, s, x], N[s, x], what was drawn
    channel           P(y|s) = Σ_x P(x|s) Q(y|s,x), also given x_J; Theorem 1: which sets of values tell most
    notions           each notion as its definition reads: [DS] Definitions 1 to 3, [RLDP] Definition 1, [PML]
    robust            Lemmas 1 to 3: one inequality for each output and two secrets, in all distributions near enough
    exact, verdict    whole numbers and fractions, e and ln from a named side; passed, failed, or not looked at and why

What a file has to say by itself its record in `funnel.format` says: no part of it is read that its schema refuses.

[DS] Lopuhaä-Zwakenberg, Tong, Škorić, Data Sanitisation Protocols for the Privacy Funnel with Differential Privacy
Guarantees. [RLDP] Lopuhaä-Zwakenberg, Goseling, Mechanisms for Robust Local Differential Privacy. [PML] Saeidian,
Cervia, Oechtering, Skoglund, Pointwise Maximal Leakage.
"""
