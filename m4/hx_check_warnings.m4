# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_WARNINGS: the warnings that the code is clean of; --enable-werror
# makes them errors.

AC_DEFUN([HX_CHECK_WARNINGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [make every warning an error])],
        [], [enable_werror=no])
    HX_WARN_CFLAGS="-Wall -Wextra -Wshadow -Wcast-qual"
    AS_IF([test "x$enable_werror" = xyes],
          [HX_WARN_CFLAGS="$HX_WARN_CFLAGS -Werror"])
    AC_SUBST([HX_WARN_CFLAGS])
])
