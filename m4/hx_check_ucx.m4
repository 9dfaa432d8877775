# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_UCX: the installed UCX, the private headers of the very same
# version, and the config.h that the installed binary was built with. A
# transport built with other headers would see other structs than libuct has.
#
# Sets UCX_CFLAGS, UCX_LIBS (public), UCT_LIBS (libuct and libucs alone),
# UCX_PRIV_CPPFLAGS, UCX_SRC, UCX_VERSION, UCX_MAJOR, UCX_MINOR.

AC_DEFUN([HX_CHECK_UCX], [
    PKG_CHECK_MODULES([UCX], [ucx >= 1.13], [],
        [AC_MSG_ERROR([UCX 1.13 or newer is missing: $UCX_PKG_ERRORS
  type: $srcdir/contrib/install-deps   (Debian: libucx-dev)])])
    UCX_VERSION=`$PKG_CONFIG --modversion ucx`
    UCX_MAJOR=`AS_ECHO(["$UCX_VERSION"]) | $SED 's/\..*//'`
    UCX_MINOR=`AS_ECHO(["$UCX_VERSION"]) | $SED 's/^@<:@0-9@:>@*\.\(@<:@0-9@:>@*\).*/\1/'`
    hx_ucx_libdir=`$PKG_CONFIG --variable=libdir ucx`
    UCX_LIBS="-L$hx_ucx_libdir -lucp -luct -lucs"
    UCT_LIBS="-L$hx_ucx_libdir -luct -lucs"

    HX_UCX_SOURCE
    HX_UCX_CONFIG_H

    dnl The configuration and the source first, so that no installed header of
    dnl the same name wins; only the generated version headers come from the
    dnl installed ones. As system headers: their warnings are not ours.
    hx_isystem=`AS_ECHO(["$UCX_CFLAGS"]) | $SED 's/-I */-isystem /g'`
    UCX_PRIV_CPPFLAGS="-DHAVE_CONFIG_H -isystem $hx_ucx_config_dir -isystem $UCX_SRC/src $hx_isystem"

    hx_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS -D_GNU_SOURCE $UCX_PRIV_CPPFLAGS $IBVERBS_CFLAGS"
    AC_MSG_CHECKING([whether UCX's private headers compile])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM(
        [[#include <config.h>
          #include <ucp/api/ucp.h>
          #include <uct/base/uct_md.h>
          #include <uct/base/uct_iface.h>]], [])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([UCX's private headers in $UCX_SRC do not compile; see config.log])])
    CPPFLAGS=$hx_save_CPPFLAGS

    AC_SUBST([UCT_LIBS])
    AC_SUBST([UCX_PRIV_CPPFLAGS])
    AC_SUBST([UCX_SRC])
    AC_SUBST([UCX_VERSION])
    AC_SUBST([UCX_MAJOR])
    AC_SUBST([UCX_MINOR])
])

# Where the source of the installed version is: as told, or where
# contrib/ucx-headers puts it.
AC_DEFUN([HX_UCX_SOURCE], [
    AC_ARG_WITH([ucx-src],
        [AS_HELP_STRING([--with-ucx-src=DIR],
            [source tree of the installed UCX version
             (default: where contrib/ucx-headers puts it)])],
        [], [with_ucx_src=])
    hx_top=`cd "$srcdir" && pwd`
    AC_MSG_CHECKING([for the source of UCX $UCX_VERSION])
    AS_IF([test -n "$with_ucx_src"],
          [UCX_SRC=`cd "$with_ucx_src" 2>/dev/null && pwd`
           AS_IF([test -z "$UCX_SRC"],
                 [AC_MSG_ERROR([--with-ucx-src=$with_ucx_src: no such directory])])],
          [UCX_SRC=$hx_top/build/ucx-src/ucx-$UCX_VERSION])
    AS_IF([test -f "$UCX_SRC/src/uct/base/uct_md.h"], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([no UCX source in $UCX_SRC
  The transport needs headers that UCX does not install. Type
      $hx_top/contrib/ucx-headers
  to fetch the source of the installed version, or give configure --with-ucx-src=DIR])])
    dnl The lines read define([ucx_ver_major], 1); to name that m4 macro here
    dnl would expand it.
    hx_src_version=`$SED -n 's/^.*ucx_ver_\(major\|minor\|patch\)@:>@, *\(@<:@0-9@:>@@<:@0-9@:>@*\)).*/\2/p' "$UCX_SRC/configure.ac" | tr '\n' . | $SED 's/\.$//'`
    AS_IF([test "x$hx_src_version" != "x$UCX_VERSION"],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$UCX_SRC is UCX $hx_src_version, installed is UCX $UCX_VERSION: they must be the same
  Type $hx_top/contrib/ucx-headers, or give configure --with-ucx-src=DIR with the source of $UCX_VERSION])])
    AC_MSG_RESULT([$UCX_SRC])
])

# ucx_info prints the configuration that it, and so the installed UCX, was
# built with; structs differ with ENABLE_STATS, ENABLE_ASSERT and others.
AC_DEFUN([HX_UCX_CONFIG_H], [
    hx_prefix=`$PKG_CONFIG --variable=exec_prefix ucx`
    AC_PATH_PROG([UCX_INFO], [ucx_info], [], [$hx_prefix/bin:$PATH])
    AS_IF([test -z "$UCX_INFO"],
        [AC_MSG_ERROR([ucx_info is missing; type: $hx_top/contrib/install-deps   (Debian: ucx-utils)])])
    AC_MSG_CHECKING([for the configuration of the installed UCX])
    hx_info_version=`"$UCX_INFO" -v 2>/dev/null | $SED -n 's/^# \(Version\|Library version:\) *\(@<:@0-9.@:>@*\).*/\2/p' | $SED 1q`
    AS_IF([test "x$hx_info_version" != "x$UCX_VERSION"],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$UCX_INFO is of UCX ${hx_info_version:-(unknown)}, but pkg-config finds UCX $UCX_VERSION; set UCX_INFO or PKG_CONFIG_PATH])])
    hx_ucx_config_dir=`pwd`/ucx-config
    AS_MKDIR_P([ucx-config])
    "$UCX_INFO" -b >ucx-config/config.h.tmp 2>/dev/null
    AS_IF([grep ENABLE_ASSERT ucx-config/config.h.tmp >/dev/null 2>&1], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$UCX_INFO -b does not print UCX's configuration])])
    dnl Only a change touches the file, so a reconfigure rebuilds nothing.
    AS_IF([cmp -s ucx-config/config.h.tmp ucx-config/config.h],
          [rm -f ucx-config/config.h.tmp],
          [mv -f ucx-config/config.h.tmp ucx-config/config.h])
    AC_MSG_RESULT([$UCX_INFO -b])
])
