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
# and is ended after HIXL_TEST_TIMEOUT seconds. HIXL_TEST_LONG=1 wants it to do
# more, HIXL_TEST_BRIEF=1, under concurrency.sh, less: it is run many times.

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

EXTRA_DIST += test/skips.txt test/support/run-one test/support/stacks

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

dist_check_SCRIPTS += test/apps/perftest.sh test/apps/preload.sh \
                      test/apps/valgrind.sh
TESTS              += test/apps/perftest.sh test/apps/preload.sh \
                      test/apps/valgrind.sh

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
EXTRA_DIST += bench/README.md bench/compare bench/vhca

dist_check_SCRIPTS += test/transport/reg.sh test/transport/reg_mr.sh \
                      test/transport/reg_refused.sh
TESTS              += test/transport/reg.sh test/transport/reg_mr.sh \
                      test/transport/reg_refused.sh

check_PROGRAMS += test/transport/test_reg
TESTS          += test/transport/test_reg
test_transport_test_reg_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_reg_LDADD    = $(HXTEST_LDADD)

# What bench/vhca runs
check_PROGRAMS += bench/vhca_put bench/vhca_ring
bench_vhca_put_CPPFLAGS  = $(AM_CPPFLAGS) $(UCX_CFLAGS)
bench_vhca_put_LDADD     = $(UCX_LIBS)
bench_vhca_ring_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
bench_vhca_ring_LDADD    = libhx_mlx5.la $(IBVERBS_LIBS)

check_PROGRAMS += test/transport/test_faults
TESTS          += test/transport/test_faults
test_transport_test_faults_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_faults_LDADD    = $(HXTEST_LDADD)

# Failures: of operations, of peers
check_PROGRAMS += test/transport/test_errors test/transport/test_errors_uct \
    test/transport/test_hostile test/transport/test_kill \
    test/transport/test_link_storm
TESTS          += test/transport/test_errors test/transport/test_errors_uct \
    test/transport/test_hostile test/transport/test_kill \
    test/transport/test_link_storm
test_transport_test_errors_CPPFLAGS     = $(HXTEST_CPPFLAGS)
test_transport_test_errors_LDADD        = $(HXTEST_LDADD)
test_transport_test_errors_uct_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_errors_uct_LDADD    = $(HXTEST_LDADD)
test_transport_test_hostile_CPPFLAGS    = $(HXTEST_CPPFLAGS)
test_transport_test_hostile_LDADD       = $(HXTEST_LDADD)
test_transport_test_kill_SOURCES        = test/transport/test_kill.c \
    test/transport/kill_board.h test/transport/kill_worker.c
test_transport_test_kill_CPPFLAGS       = $(HXTEST_CPPFLAGS)
test_transport_test_kill_LDADD          = $(HXTEST_LDADD)
test_transport_test_link_storm_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_link_storm_LDADD    = $(HXTEST_LDADD)

# The programs of concurrency.txt many times, with both cores loaded
dist_check_SCRIPTS += test/concurrency.sh
TESTS              += test/concurrency.sh
EXTRA_DIST         += test/concurrency.txt

# Fuzz targets: their corpora always, libFuzzer under --long; see fuzz.sh
HXFUZZ_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_PRIV_CPPFLAGS)
HXFUZZ_CFLAGS   = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(CMOCKA_CFLAGS)
HXFUZZ_LIBS     = libuct_hixl_int.la $(UCX_LIBS) $(IBVERBS_LIBS) -lpthread
check_PROGRAMS += test/fuzz/corpus_cm_addr test/fuzz/corpus_cm_exchange \
    test/fuzz/corpus_cm_msg test/fuzz/corpus_rkey
test_fuzz_corpus_cm_addr_SOURCES      = test/fuzz/corpus.c test/fuzz/fuzz.h \
    test/fuzz/fuzz_cm_addr.c
test_fuzz_corpus_cm_addr_CPPFLAGS     = $(HXFUZZ_CPPFLAGS)
test_fuzz_corpus_cm_addr_CFLAGS       = $(HXFUZZ_CFLAGS)
test_fuzz_corpus_cm_addr_LDADD        = $(HXFUZZ_LIBS)
test_fuzz_corpus_cm_exchange_SOURCES  = test/fuzz/corpus.c test/fuzz/fuzz.h \
    test/fuzz/fuzz_cm_exchange.c $(HX_CM_FIXTURE)
test_fuzz_corpus_cm_exchange_CPPFLAGS = $(HXFUZZ_CPPFLAGS)
test_fuzz_corpus_cm_exchange_CFLAGS   = $(HXFUZZ_CFLAGS)
test_fuzz_corpus_cm_exchange_LDADD    = $(HXFUZZ_LIBS) $(CMOCKA_LIBS)
test_fuzz_corpus_cm_msg_SOURCES       = test/fuzz/corpus.c test/fuzz/fuzz.h \
    test/fuzz/fuzz_cm_msg.c
test_fuzz_corpus_cm_msg_CPPFLAGS      = $(HXFUZZ_CPPFLAGS)
test_fuzz_corpus_cm_msg_CFLAGS        = $(HXFUZZ_CFLAGS)
test_fuzz_corpus_cm_msg_LDADD         = $(HXFUZZ_LIBS)
test_fuzz_corpus_rkey_SOURCES         = test/fuzz/corpus.c test/fuzz/fuzz.h \
    test/fuzz/fuzz_rkey.c
test_fuzz_corpus_rkey_CPPFLAGS        = $(HXFUZZ_CPPFLAGS)
test_fuzz_corpus_rkey_CFLAGS          = $(HXFUZZ_CFLAGS)
test_fuzz_corpus_rkey_LDADD           = $(HXFUZZ_LIBS)

dist_check_SCRIPTS += test/fuzz/fuzz.sh
TESTS              += test/fuzz/fuzz.sh
check_DATA          = test/fuzz/flags
CLEANFILES         += test/fuzz/flags
EXTRA_DIST         += test/fuzz/corpus

test/fuzz/flags: Makefile
	$(AM_V_GEN)$(MKDIR_P) test/fuzz && \
	    { echo "cppflags='-I$(abs_top_builddir) $(HXFUZZ_CPPFLAGS) $(IBVERBS_CFLAGS) $(CMOCKA_CFLAGS)'"; \
	      echo "libs='$(UCX_LIBS) $(IBVERBS_LIBS) $(CMOCKA_LIBS) -lpthread -ldl'"; \
	    } >$@

# What limits are called
TESTS              += test/vhca/limits.sh
dist_check_SCRIPTS += test/vhca/limits.sh

# The device is taken away
check_PROGRAMS += test/transport/test_gone
TESTS          += test/transport/test_gone
test_transport_test_gone_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_gone_LDADD    = $(HXTEST_LDADD)

# Keys and endpoints that are invalidated: by calls of UCX's newer interface,
# the header of which is not installed
check_PROGRAMS += test/transport/test_invalidate
TESTS          += test/transport/test_invalidate
test_transport_test_invalidate_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test \
                                          $(UCX_PRIV_CPPFLAGS) $(CMOCKA_CFLAGS)
test_transport_test_invalidate_LDADD    = $(HXTEST_LDADD)

dist_check_SCRIPTS += test/apps/hixl_info.sh
TESTS              += test/apps/hixl_info.sh
EXTRA_DIST         += test/apps/hixl_info_shim.c

dist_check_SCRIPTS += test/apps/variables.sh
TESTS              += test/apps/variables.sh

# Reads by a header that UCX does not install
check_PROGRAMS += test/transport/test_vfs
TESTS          += test/transport/test_vfs
test_transport_test_vfs_CPPFLAGS = $(HXTEST_CPPFLAGS) $(UCX_PRIV_CPPFLAGS)
test_transport_test_vfs_LDADD    = $(HXTEST_LDADD)

check_PROGRAMS += test/transport/test_wakeup
TESTS          += test/transport/test_wakeup
test_transport_test_wakeup_CPPFLAGS = $(HXTEST_CPPFLAGS)
test_transport_test_wakeup_LDADD    = $(HXTEST_LDADD)
