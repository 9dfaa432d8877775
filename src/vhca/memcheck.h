/* SPDX-License-Identifier: BSD-3-Clause */

/* What valgrind's memcheck is told, a few instructions without effect when it
 * does not run; nothing at all where its header was not there at build time. */

#ifndef VHCA_MEMCHECK_H_
#define VHCA_MEMCHECK_H_

#if __has_include(<valgrind/memcheck.h>)
#  include <valgrind/memcheck.h>
#else
#  define VALGRIND_MAKE_MEM_NOACCESS(_at, _len)                      0
#  define VALGRIND_MAKE_MEM_DEFINED(_at, _len)                       0
#  define VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(_at, _len)  0
#endif

#endif
