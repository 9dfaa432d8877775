# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_PLATFORM: Linux on x86-64 is what the barriers and the emulated
# device are written for.

AC_DEFUN([HX_CHECK_PLATFORM], [
    AC_CANONICAL_HOST
    AS_CASE([$host],
        [x86_64-*-linux-gnu], [],
        [AC_MSG_ERROR([$host: only x86_64 Linux with glibc is supported])])
])
