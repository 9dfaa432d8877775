# SPDX-License-Identifier: BSD-3-Clause
# libhixl_load.so is preloaded into every program that hixl-run starts, also
# into shells: libc only, no sanitizer, no start files, few segments and
# relocations.

lib_LTLIBRARIES += libhixl_load.la

libhixl_load_la_SOURCES  = src/load/load.c
libhixl_load_la_CPPFLAGS = $(AM_CPPFLAGS) -DHX_UCX_MAJOR=$(UCX_MAJOR) \
                           -DHX_UCX_MINOR=$(UCX_MINOR)
libhixl_load_la_CFLAGS   = -std=gnu11 -fvisibility=hidden $(HX_WARN_CFLAGS) \
                           $(HX_OPT_CFLAGS)
libhixl_load_la_LDFLAGS  = -module -avoid-version -no-undefined \
                           -Wc,-nostartfiles -Wl,-Bsymbolic \
                           -Wl,-z,noseparate-code

dist_check_SCRIPTS += test/unit/load.sh
TESTS              += test/unit/load.sh
