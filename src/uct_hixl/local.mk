# SPDX-License-Identifier: BSD-3-Clause
# The UCT transport. UCX finds it as libuct_hixl.so.0; it is never unloaded,
# since UCX keeps pointers into it.

noinst_LTLIBRARIES += libuct_hixl_int.la
pkglib_LTLIBRARIES += libuct_hixl.la

# All of it, for the unit tests to link with.
libuct_hixl_int_la_SOURCES = \
    src/uct_hixl/hixl_am.c \
    src/uct_hixl/hixl_async.c \
    src/uct_hixl/hixl_async.h \
    src/uct_hixl/hixl_attr.c \
    src/uct_hixl/hixl_bounce.c \
    src/uct_hixl/hixl_budget.c \
    src/uct_hixl/hixl_budget.h \
    src/uct_hixl/hixl_cm.c \
    src/uct_hixl/hixl_cm.h \
    src/uct_hixl/hixl_cm_conn.c \
    src/uct_hixl/hixl_cm_exchange.c \
    src/uct_hixl/hixl_cm_int.h \
    src/uct_hixl/hixl_cm_listen.c \
    src/uct_hixl/hixl_cm_loop.c \
    src/uct_hixl/hixl_cm_proto.c \
    src/uct_hixl/hixl_cm_proto.h \
    src/uct_hixl/hixl_compat.c \
    src/uct_hixl/hixl_compat.h \
    src/uct_hixl/hixl_component.c \
    src/uct_hixl/hixl_config.c \
    src/uct_hixl/hixl_ep.c \
    src/uct_hixl/hixl_ep.h \
    src/uct_hixl/hixl_event.c \
    src/uct_hixl/hixl_event.h \
    src/uct_hixl/hixl_gone.c \
    src/uct_hixl/hixl_iface.c \
    src/uct_hixl/hixl_iface.h \
    src/uct_hixl/hixl_link.c \
    src/uct_hixl/hixl_link.h \
    src/uct_hixl/hixl_log.c \
    src/uct_hixl/hixl_log.h \
    src/uct_hixl/hixl_md.c \
    src/uct_hixl/hixl_md.h \
    src/uct_hixl/hixl_mem.c \
    src/uct_hixl/hixl_pending.c \
    src/uct_hixl/hixl_pool.c \
    src/uct_hixl/hixl_reg.c \
    src/uct_hixl/hixl_reg.h \
    src/uct_hixl/hixl_rma.c \
    src/uct_hixl/hixl_vfs.c \
    src/uct_hixl/hixl_vfs.h
libuct_hixl_int_la_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_PRIV_CPPFLAGS)
libuct_hixl_int_la_CFLAGS   = $(AM_CFLAGS) $(IBVERBS_CFLAGS)
libuct_hixl_int_la_LIBADD   = libhx_mlx5.la

libuct_hixl_la_SOURCES =
libuct_hixl_la_LIBADD  = libuct_hixl_int.la $(UCT_LIBS) $(IBVERBS_LIBS)
libuct_hixl_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
                         -Wl,-z,defs -Wl,-z,nodelete

# What a unit test of the transport links with and compiles by.
HX_UCT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_PRIV_CPPFLAGS)
HX_UCT_TEST_LIBS     = libuct_hixl_int.la $(UCT_LIBS) $(IBVERBS_LIBS) \
                       $(CMOCKA_LIBS)

check_PROGRAMS += test/unit/test_hixl_log \
    test/unit/test_hixl_md \
    test/unit/test_hixl_mem \
    test/unit/test_hixl_reg
TESTS          += test/unit/test_hixl_log \
    test/unit/test_hixl_md \
    test/unit/test_hixl_mem \
    test/unit/test_hixl_reg

test_unit_test_hixl_log_SOURCES  = test/unit/test_hixl_log.c
test_unit_test_hixl_log_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_log_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_log_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_reg_SOURCES  = test/unit/test_hixl_reg.c
test_unit_test_hixl_reg_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_reg_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_reg_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_md_SOURCES  = test/unit/test_hixl_md.c
test_unit_test_hixl_md_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_md_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_md_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_mem_SOURCES  = test/unit/test_hixl_mem.c
test_unit_test_hixl_mem_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_mem_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_mem_LDADD    = $(HX_UCT_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_attr
TESTS          += test/unit/test_hixl_attr

test_unit_test_hixl_attr_SOURCES  = test/unit/test_hixl_attr.c
test_unit_test_hixl_attr_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_attr_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_attr_LDADD    = $(HX_UCT_TEST_LIBS)

# Interface and endpoint over doubles of all that lies below them, so without
# the library: their own sources, and a device that a test steps.
HX_EP_FIXTURE = test/unit/hixl_ep_fixture.c test/unit/hixl_ep_fixture.h \
    src/uct_hixl/hixl_am.c \
    src/uct_hixl/hixl_attr.c \
    src/uct_hixl/hixl_bounce.c \
    src/uct_hixl/hixl_config.c \
    src/uct_hixl/hixl_ep.c \
    src/uct_hixl/hixl_event.c \
    src/uct_hixl/hixl_gone.c \
    src/uct_hixl/hixl_iface.c \
    src/uct_hixl/hixl_link.c \
    src/uct_hixl/hixl_pending.c \
    src/uct_hixl/hixl_pool.c \
    src/uct_hixl/hixl_rma.c
HX_EP_TEST_LIBS = $(UCT_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += test/unit/test_hixl_am
TESTS          += test/unit/test_hixl_am

test_unit_test_hixl_am_SOURCES  = test/unit/test_hixl_am.c $(HX_EP_FIXTURE)
test_unit_test_hixl_am_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_am_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(IBVERBS_CFLAGS)
test_unit_test_hixl_am_LDADD    = $(HX_EP_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_bounce
TESTS          += test/unit/test_hixl_bounce

test_unit_test_hixl_bounce_SOURCES  = test/unit/test_hixl_bounce.c $(HX_EP_FIXTURE)
test_unit_test_hixl_bounce_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_bounce_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(IBVERBS_CFLAGS)
test_unit_test_hixl_bounce_LDADD    = $(HX_EP_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_ep
TESTS          += test/unit/test_hixl_ep

test_unit_test_hixl_ep_SOURCES  = test/unit/test_hixl_ep.c $(HX_EP_FIXTURE)
test_unit_test_hixl_ep_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_ep_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(IBVERBS_CFLAGS)
test_unit_test_hixl_ep_LDADD    = $(HX_EP_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_link
TESTS          += test/unit/test_hixl_link

test_unit_test_hixl_link_SOURCES  = test/unit/test_hixl_link.c
test_unit_test_hixl_link_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_link_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_link_LDADD    = $(HX_UCT_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_cm \
    test/unit/test_hixl_cm_hostile \
    test/unit/test_hixl_cm_storm \
    test/unit/test_hixl_cm_proto
TESTS          += test/unit/test_hixl_cm \
    test/unit/test_hixl_cm_hostile \
    test/unit/test_hixl_cm_storm \
    test/unit/test_hixl_cm_proto

# Doubles of what the connection manager calls; the linker takes them first.
HX_CM_FIXTURE = test/unit/hixl_cm_fixture.c test/unit/hixl_cm_fixture.h

test_unit_test_hixl_cm_SOURCES  = test/unit/test_hixl_cm.c $(HX_CM_FIXTURE)
test_unit_test_hixl_cm_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_cm_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_cm_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_cm_hostile_SOURCES  = test/unit/test_hixl_cm_hostile.c \
    $(HX_CM_FIXTURE)
test_unit_test_hixl_cm_hostile_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_cm_hostile_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_cm_hostile_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_cm_storm_SOURCES  = test/unit/test_hixl_cm_storm.c \
    $(HX_CM_FIXTURE)
test_unit_test_hixl_cm_storm_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_cm_storm_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_cm_storm_LDADD    = $(HX_UCT_TEST_LIBS)

test_unit_test_hixl_cm_proto_SOURCES  = test/unit/test_hixl_cm_proto.c
test_unit_test_hixl_cm_proto_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_cm_proto_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_hixl_cm_proto_LDADD    = $(HX_UCT_TEST_LIBS)

check_PROGRAMS += test/unit/test_hixl_event
TESTS          += test/unit/test_hixl_event

test_unit_test_hixl_event_SOURCES  = test/unit/test_hixl_event.c $(HX_EP_FIXTURE)
test_unit_test_hixl_event_CPPFLAGS = $(HX_UCT_TEST_CPPFLAGS)
test_unit_test_hixl_event_CFLAGS   = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(IBVERBS_CFLAGS)
test_unit_test_hixl_event_LDADD    = $(HX_EP_TEST_LIBS)
