"""Ways to tamper with releases, by what they change; `tests.trials.tampering` draws from them."""
