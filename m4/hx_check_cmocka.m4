# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_CMOCKA: the library that the tests are written with.

AC_DEFUN([HX_CHECK_CMOCKA], [
    PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5], [],
        [AC_MSG_ERROR([cmocka 1.1.5 or newer is missing: $CMOCKA_PKG_ERRORS
  type: $srcdir/contrib/install-deps   (Debian: libcmocka-dev)])])
])
