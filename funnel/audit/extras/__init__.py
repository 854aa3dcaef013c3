"""What is checked beside the kernel: one claim a file, which may use libraries; none of them carries the promise.

Each file has CLAIM, TITLE, NEEDS (which of the records in `Opened` it reads) and `check`; `funnel.audit.audit` lists
them.
"""
