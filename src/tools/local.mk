# SPDX-License-Identifier: BSD-3-Clause
# vhca-stat: libc only; who.c is the device's own way to tell live processes.

bin_PROGRAMS += vhca-stat

vhca_stat_SOURCES = \
    src/tools/vhca-stat.c \
    src/vhca/device.c \
    src/vhca/fault.h \
    src/vhca/fault_spec.c \
    src/vhca/who.c

# The NIC side with vhca-stat as its witness; no preload is needed for these
VHCA_NIC_TESTS = \
    test/unit/test_vhca_cq \
    test/unit/test_vhca_exec \
    test/unit/test_vhca_fault \
    test/unit/test_vhca_mutation \
    test/unit/test_vhca_pages \
    test/unit/test_vhca_resp \
    test/unit/test_vhca_share \
    test/unit/test_vhca_stat \
    test/unit/test_vhca_storm \
    test/unit/test_vhca_trace \
    test/unit/test_vhca_wait \
    test/unit/test_vhca_watch

check_PROGRAMS += $(VHCA_NIC_TESTS)
TESTS          += $(VHCA_NIC_TESTS)

test_unit_test_vhca_cq_SOURCES  = test/unit/test_vhca_cq.c \
                                  test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_cq_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_cq_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_exec_SOURCES  = test/unit/test_vhca_exec.c \
                                    test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_exec_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_exec_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_resp_SOURCES  = test/unit/test_vhca_resp.c \
                                    test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_resp_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_resp_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_mutation_SOURCES  = test/unit/test_vhca_mutation.c \
                                        test/unit/vhca_node.h \
                                        $(VHCA_NIC_SOURCES)
test_unit_test_vhca_mutation_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_mutation_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_pages_SOURCES  = test/unit/test_vhca_pages.c \
                                     test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_pages_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_pages_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_stat_SOURCES  = test/unit/test_vhca_stat.c \
                                    test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_stat_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_stat_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_storm_SOURCES  = test/unit/test_vhca_storm.c \
                                     test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_storm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_storm_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_watch_SOURCES  = test/unit/test_vhca_watch.c \
                                     test/unit/vhca_node.h \
                                     $(VHCA_NIC_SOURCES)
test_unit_test_vhca_watch_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_watch_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_wait_SOURCES  = test/unit/test_vhca_wait.c \
                                    test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_wait_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_wait_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_share_SOURCES  = test/unit/test_vhca_share.c \
                                     test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_share_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_share_LDADD    = $(CMOCKA_LIBS)

test_unit_test_vhca_fault_SOURCES  = test/unit/test_vhca_fault.c \
                                     test/unit/vhca_node.h $(VHCA_NIC_SOURCES)
test_unit_test_vhca_fault_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_fault_LDADD    = $(CMOCKA_LIBS)

# Beside the NIC side, what decodes commands
test_unit_test_vhca_trace_SOURCES  = test/unit/test_vhca_trace.c \
                                     test/unit/vhca_node.h \
                                     src/vhca/prm_table.c \
                                     src/vhca/trace_cmd.c $(VHCA_NIC_SOURCES)
test_unit_test_vhca_trace_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_vhca_trace_LDADD    = $(CMOCKA_LIBS)

# The device half and rdma-core, no UCX: it dlopens libucp for its version
bin_PROGRAMS += hixl_info

hixl_info_SOURCES = \
    src/tools/hixl_info.c \
    src/tools/info.h \
    src/tools/info_dev.c \
    src/tools/info_env.c \
    src/tools/info_port.c \
    src/tools/info_proc.c \
    src/tools/info_ucx.c \
    src/tools/info_why.c
hixl_info_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) \
                     -DHX_UCX_MAJOR=$(UCX_MAJOR) -DHX_UCX_MINOR=$(UCX_MINOR)
hixl_info_LDADD    = libhx_mlx5.la $(IBVERBS_LIBS)
