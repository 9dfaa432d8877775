# SPDX-License-Identifier: BSD-3-Clause
# The emulated device: LD_PRELOADed into every program, so libc only, few
# relocations, and nothing exported but what it interposes.

lib_LTLIBRARIES += libvhca.la

# The kernel side: what libibverbs and libmlx5 talk to
VHCA_KERNEL_SOURCES = \
    src/vhca/caps.c \
    src/vhca/devx.c \
    src/vhca/devx_mkey.c \
    src/vhca/devx_qp.c \
    src/vhca/devx_query.c \
    src/vhca/devx_queue.c \
    src/vhca/fdtab.c \
    src/vhca/kernel.h \
    src/vhca/prm_layout.h \
    src/vhca/prm_table.c \
    src/vhca/prm_table.h \
    src/vhca/sysfs.c \
    src/vhca/trace_cmd.c \
    src/vhca/umem.c \
    src/vhca/uobj.c \
    src/vhca/uverbs.c \
    src/vhca/uverbs_cq.c \
    src/vhca/uverbs_dev.c \
    src/vhca/uverbs_mr.c \
    src/vhca/uverbs_modify.c \
    src/vhca/uverbs_obj.c \
    src/vhca/uverbs_qp.c \
    src/vhca/uverbs_qp.h \
    src/vhca/uverbs_srq.c \
    src/vhca/vhca.h

# The NIC side: the fabric between processes, queues, keys, execution
VHCA_NIC_SOURCES = \
    src/vhca/atomic.c \
    src/vhca/cq.c \
    src/vhca/data.c \
    src/vhca/decode.c \
    src/vhca/decode.h \
    src/vhca/device.c \
    src/vhca/doorbell.c \
    src/vhca/doorbell.h \
    src/vhca/event.c \
    src/vhca/exec.c \
    src/vhca/fabric.c \
    src/vhca/fault.c \
    src/vhca/fault.h \
    src/vhca/fault_spec.c \
    src/vhca/memcheck.h \
    src/vhca/mkey.c \
    src/vhca/nic.h \
    src/vhca/pages.c \
    src/vhca/qp.c \
    src/vhca/resp.c \
    src/vhca/share.c \
    src/vhca/srq.c \
    src/vhca/stat.c \
    src/vhca/sweep.c \
    src/vhca/sync.c \
    src/vhca/table.c \
    src/vhca/timer.c \
    src/vhca/ud.c \
    src/vhca/trace.c \
    src/vhca/trace.h \
    src/vhca/trace_wqe.c \
    src/vhca/watch.c \
    src/vhca/who.c \
    src/vhca/wqe.h

libvhca_la_SOURCES = src/vhca/preload.c $(VHCA_KERNEL_SOURCES) \
                     $(VHCA_NIC_SOURCES)
# It is there from the start of the process: initial-exec needs no help of the
# dynamic linker.
libvhca_la_CFLAGS  = $(AM_CFLAGS) -ftls-model=initial-exec
libvhca_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined \
                     -Wl,--version-script=$(top_srcdir)/src/vhca/libvhca.map \
                     -Wl,-Bsymbolic -Wl,--hash-style=gnu \
                     -Wc,-nostartfiles -Wl,-z,noseparate-code
libvhca_la_DEPENDENCIES = src/vhca/libvhca.map
EXTRA_DIST             += src/vhca/libvhca.map

VHCA_KERNEL_TESTS = \
    test/unit/test_devx_decode \
    test/unit/test_devx_refuse \
    test/unit/test_prm_table \
    test/unit/test_uverbs_refuse

check_PROGRAMS += $(VHCA_KERNEL_TESTS) test/vhca/test_kernel_side
TESTS          += $(VHCA_KERNEL_TESTS) test/vhca/kernel_side.sh

test_unit_test_prm_table_SOURCES  = test/unit/test_prm_table.c \
                                    src/vhca/prm_table.c
test_unit_test_prm_table_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_prm_table_LDADD    = $(CMOCKA_LIBS)

# The kernel side with a NIC side that only remembers what it was told
check_LTLIBRARIES  += libvhca_kernel_test.la
libvhca_kernel_test_la_SOURCES  = $(VHCA_KERNEL_SOURCES) \
                                  src/vhca/fault.h src/vhca/trace.c \
                                  src/vhca/trace.h \
                                  test/unit/vhca_devx_fixture.c \
                                  test/unit/vhca_devx_fixture.h \
                                  test/unit/vhca_nic_fixture.c \
                                  test/unit/vhca_nic_fixture.h
libvhca_kernel_test_la_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)

test_unit_test_devx_decode_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_devx_decode_LDADD    = libvhca_kernel_test.la $(CMOCKA_LIBS)

test_unit_test_devx_refuse_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_devx_refuse_LDADD    = libvhca_kernel_test.la $(CMOCKA_LIBS)

test_unit_test_uverbs_refuse_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_uverbs_refuse_LDADD    = libvhca_kernel_test.la $(CMOCKA_LIBS)

# The real libibverbs and libmlx5 on the device: run by kernel_side.sh
test_vhca_test_kernel_side_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) \
                                      $(CMOCKA_CFLAGS)
test_vhca_test_kernel_side_LDADD    = $(IBVERBS_LIBS) $(CMOCKA_LIBS)

dist_check_SCRIPTS += test/vhca/kernel_side.sh

# rdma-core's own tests
dist_check_SCRIPTS += test/vhca/pyverbs.sh
TESTS              += test/vhca/pyverbs.sh
EXTRA_DIST         += test/vhca/pyverbs-skips.txt

# Faults on demand: run by faults.sh
check_PROGRAMS     += test/vhca/test_faults
dist_check_SCRIPTS += test/vhca/faults.sh
TESTS              += test/vhca/faults.sh
test_vhca_test_faults_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test \
                                 $(IBVERBS_CFLAGS) $(CMOCKA_CFLAGS)
test_vhca_test_faults_LDADD    = libhxtest.la $(IBVERBS_LIBS) $(CMOCKA_LIBS)

# Programs that know verbs only
check_PROGRAMS     += test/vhca/test_verbs
dist_check_SCRIPTS += test/vhca/verbs.sh test/vhca/verbs_objects.sh
TESTS              += test/vhca/verbs.sh test/vhca/verbs_objects.sh
test_vhca_test_verbs_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) \
                                $(CMOCKA_CFLAGS)
test_vhca_test_verbs_LDADD    = $(IBVERBS_LIBS) $(CMOCKA_LIBS)
