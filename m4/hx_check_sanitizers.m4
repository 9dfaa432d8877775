# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_SANITIZERS: --enable-asan (with UndefinedBehaviorSanitizer, which ends
# the program at its first report), --enable-tsan. HX_SANITIZER_LIB is the
# runtime that must come first in LD_PRELOAD when a library of ours is loaded
# into a program that was built without the sanitizer.

AC_DEFUN([HX_CHECK_SANITIZERS], [
    AC_ARG_ENABLE([asan],
        [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and
                        UndefinedBehaviorSanitizer])],
        [], [enable_asan=no])
    AC_ARG_ENABLE([tsan],
        [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])],
        [], [enable_tsan=no])
    AS_IF([test "x$enable_asan" = xyes && test "x$enable_tsan" = xyes],
          [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])

    HX_SANITIZER=
    HX_SANITIZER_CFLAGS=
    HX_SANITIZER_LIB=
    AS_IF([test "x$enable_asan" = xyes], [HX_SANITIZER=address hx_rt=libasan],
          [test "x$enable_tsan" = xyes], [HX_SANITIZER=thread hx_rt=libtsan])
    AS_IF([test -n "$HX_SANITIZER"], [
        HX_SANITIZER_CFLAGS="-fsanitize=$HX_SANITIZER -fno-omit-frame-pointer"
        AS_IF([test "x$enable_asan" = xyes],
            [HX_SANITIZER_CFLAGS="$HX_SANITIZER_CFLAGS -fsanitize=undefined"
             HX_SANITIZER_CFLAGS="$HX_SANITIZER_CFLAGS -fno-sanitize-recover=undefined"])
        hx_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $HX_SANITIZER_CFLAGS"
        AC_MSG_CHECKING([whether $CC links with $HX_SANITIZER_CFLAGS])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([$CC has no runtime for -fsanitize=$HX_SANITIZER])])
        dnl gcc says of each fence that ThreadSanitizer does not know it
        CFLAGS="$CFLAGS -Werror -Wno-tsan"
        AS_IF([test "x$enable_tsan" = xyes],
            [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
                [HX_SANITIZER_CFLAGS="$HX_SANITIZER_CFLAGS -Wno-tsan"])])
        CFLAGS=$hx_save_CFLAGS
        dnl The .so may be a linker script; the runtime itself has a number.
        hx_dir=`dirname "\`$CC -print-file-name=$hx_rt.so\`"`
        hx_so=`readlink -f "$hx_dir/$hx_rt.so"`
        AS_IF([test -f "$hx_so"], [HX_SANITIZER_LIB=$hx_so],
              [AC_MSG_ERROR([cannot find the shared $hx_rt of $CC])])
    ])
    AC_SUBST([HX_SANITIZER])
    AC_SUBST([HX_SANITIZER_CFLAGS])
    AC_SUBST([HX_SANITIZER_LIB])
    AM_CONDITIONAL([HX_SANITIZED], [test -n "$HX_SANITIZER"])
])
