"""What a reader can check of a release who has its publisher's public key and nothing private.

It imports the kernel, `funnel.format` and cryptography, whose one function it needs: an Ed25519 signature (RFC 8032).

    envelope    the publisher's key, and what it signed
    attested    that a statement is about these very files, and says what release.json says
    feed        that a release is listed, and no older one stands in the place of the newest
    verify      the kernel's claims about published files, and the signature: what `funnel verify` tells
"""
