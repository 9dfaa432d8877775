# SPDX-License-Identifier: BSD-3-Clause
# The tests, run by `make check`; contrib/check runs them and counts.
#
# A cmocka program: check_PROGRAMS and TESTS both name test/<dir>/test_<what>.
# A script: test/<dir>/<what>.sh in dist_check_SCRIPTS and TESTS. Either may
# exit 77 when it cannot run here; test/skips.txt lists the skips that are
# expected. Every test finds these in its environment:
#   HIXL_BUILD    this build tree      HIXL_TOP   the source tree
#   HIXL_RUN      contrib/hixl-run     CMOCKA_MESSAGE_OUTPUT=stdout
#   VHCA_FABRIC   a fabric of its own
# and is ended after HIXL_TEST_TIMEOUT seconds.

HIXL_TEST_TIMEOUT = 300

AM_TESTS_ENVIRONMENT = \
    HIXL_BUILD='$(abs_top_builddir)'; export HIXL_BUILD; \
    HIXL_TOP='$(abs_top_srcdir)'; export HIXL_TOP; \
    HIXL_RUN='$(abs_top_srcdir)/contrib/hixl-run'; export HIXL_RUN; \
    CC='$(CC)'; export CC; \
    HIXL_SANITIZER='$(HX_SANITIZER)'; export HIXL_SANITIZER; \
    CMOCKA_MESSAGE_OUTPUT=stdout; export CMOCKA_MESSAGE_OUTPUT;

TEST_EXTENSIONS  = .sh
LOG_COMPILER     = $(srcdir)/test/support/run-one
AM_LOG_FLAGS     = $(HIXL_TEST_TIMEOUT)
SH_LOG_COMPILER  = $(srcdir)/test/support/run-one
AM_SH_LOG_FLAGS  = $(HIXL_TEST_TIMEOUT) bash

EXTRA_DIST += test/skips.txt test/support/run-one

# What the programs of several processes share
check_LTLIBRARIES += libhxtest.la
libhxtest_la_SOURCES = \
    test/support/bytes.c \
    test/support/bytes.h \
    test/support/peers.c \
    test/support/peers.h \
    test/support/proc.c \
    test/support/stat.c \
    test/support/stat.h \
    test/support/ucp.c \
    test/support/ucp.h \
    test/support/uct.c \
    test/support/uct.h \
    test/support/wire.h
libhxtest_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test $(UCX_CFLAGS) \
                        $(CMOCKA_CFLAGS)
EXTRA_DIST += test/support/lib.sh

HXTEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test $(UCX_CFLAGS) \
                  $(CMOCKA_CFLAGS)
HXTEST_LDADD    = libhxtest.la $(UCX_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test/transport/test_traffic_ib
TESTS          += test/transport/test_traffic_ib
test_transport_test_traffic_ib_SOURCES  = test/transport/test_traffic.c
test_transport_test_traffic_ib_CPPFLAGS = $(HXTEST_CPPFLAGS) \
                                          -DHXT_LINK='"ib"'
test_transport_test_traffic_ib_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_traffic_roce
TESTS          += test/transport/test_traffic_roce
test_transport_test_traffic_roce_SOURCES  = test/transport/test_traffic.c
test_transport_test_traffic_roce_CPPFLAGS = $(HXTEST_CPPFLAGS) \
                                            -DHXT_LINK='"roce"'
test_transport_test_traffic_roce_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_budget
TESTS          += test/transport/test_budget
test_transport_test_budget_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_budget_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_order
TESTS          += test/transport/test_order
test_transport_test_order_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_order_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_links
TESTS          += test/transport/test_links
test_transport_test_links_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_links_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_uct
TESTS          += test/transport/test_uct
test_transport_test_uct_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_uct_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_uct_flow
TESTS          += test/transport/test_uct_flow
test_transport_test_uct_flow_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_uct_flow_LDADD    = $(HXTEST_LDADD)

dist_check_SCRIPTS += test/apps/perftest.sh test/apps/preload.sh
TESTS              += test/apps/perftest.sh test/apps/preload.sh

# The driver's layouts as a table, made of its header
check_PROGRAMS += test/unit/test_layouts
TESTS          += test/unit/test_layouts
test_unit_test_layouts_SOURCES = test/unit/test_layouts.c test/unit/layouts.h \
                                 src/vhca/prm_table.c src/vhca/prm_table.h \
                                 src/vhca/prm_layout.h
nodist_test_unit_test_layouts_SOURCES = test/unit/layouts_driver.c
test_unit_test_layouts_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test/unit \
                                  $(CMOCKA_CFLAGS)
test_unit_test_layouts_LDADD = $(CMOCKA_LIBS)
EXTRA_DIST += contrib/check-prm
CLEANFILES += test/unit/layouts_driver.c

test/unit/layouts_driver.c: src/mlx5/prm.h contrib/check-prm
	$(AM_V_GEN)$(MKDIR_P) test/unit && \
	    $(top_srcdir)/contrib/check-prm --c $(top_srcdir)/src/mlx5/prm.h \
	        >$@.tmp && mv -f $@.tmp $@
EXTRA_DIST += bench/README.md bench/compare
