"""Every file of a release, once: its schema as frozen records, and the one way in which it is written as bytes.

Writer, kernel, report and analyst read and write through this room alone. It imports the standard library and nothing
else, since an auditor reads it as a part of the kernel.
"""
