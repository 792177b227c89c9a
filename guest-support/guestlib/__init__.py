# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of guest-support share: the cache, Debian packages, cpio archives, patches."""
