"""The part of the audit that must be trusted: it imports the standard library, numpy and `funnel.format`.

Read `check` first, for it lists every claim; each claim's function says what it rests on. What this room proves:

    verdict, files, opened    what is said of a claim; how files are read, strictly and once
    published, private        the files: their form, hashes and terms; counts and protocols, how they fit together
    exact, channel, notions   whole numbers; what an output tells whom; every notion as its definition reads
    robust                    one inequality for each output and two secrets, under every distribution near enough
    information, figures      averages; the bound, and the figures stated, against the channel released
    chance, drawing, noise    tests of fit; what was drawn for whom; what a private estimate added, how near is enough
    ledger                    the journal's chain, and this release's entry in it

It verifies and never searches: where a proof needs numbers that somebody had to look for, a file of the release
holds them. Papers: [DS] Data Sanitisation Protocols, [RLDP] Mechanisms for Robust LDP.
"""
