# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_DEBUG: -O2 -g, or with --enable-debug no optimization. CFLAGS given
# to configure or make come after these and win.

AC_DEFUN([HX_CHECK_DEBUG], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug],
                        [build for a debugger: -O0 -g3])],
        [], [enable_debug=no])
    AS_IF([test "x$enable_debug" = xyes],
          [HX_OPT_CFLAGS="-O0 -g3"],
          [HX_OPT_CFLAGS="-O2 -g"])
    AC_SUBST([HX_OPT_CFLAGS])
])
