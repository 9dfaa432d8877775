# SPDX-License-Identifier: BSD-3-Clause
# The device half: a convenience library, and its tests.

noinst_LTLIBRARIES += libhx_mlx5.la

libhx_mlx5_la_SOURCES = \
    src/mlx5/caps.c \
    src/mlx5/caps.h \
    src/mlx5/cmd.c \
    src/mlx5/cmd.h \
    src/mlx5/counter.c \
    src/mlx5/cq.c \
    src/mlx5/cq_poll.h \
    src/mlx5/dev.c \
    src/mlx5/event.c \
    src/mlx5/hx.h \
    src/mlx5/limits.c \
    src/mlx5/log.c \
    src/mlx5/mkey.c \
    src/mlx5/mkey.h \
    src/mlx5/mmio.h \
    src/mlx5/prm.h \
    src/mlx5/prm_access.h \
    src/mlx5/qp.c \
    src/mlx5/reg_mode.c \
    src/mlx5/selftest.c \
    src/mlx5/sq.h \
    src/mlx5/srq.c \
    src/mlx5/umem.c \
    src/mlx5/umem.h \
    src/mlx5/wqe.h
libhx_mlx5_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
libhx_mlx5_la_LIBADD   = $(IBVERBS_LIBS)

HX_MLX5_TESTS = \
    test/unit/test_caps \
    test/unit/test_cmd \
    test/unit/test_counter \
    test/unit/test_cq_poll \
    test/unit/test_limits \
    test/unit/test_prm \
    test/unit/test_qp \
    test/unit/test_reg_mode \
    test/unit/test_selftest \
    test/unit/test_sq \
    test/unit/test_umem

HX_MLX5_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) $(CMOCKA_CFLAGS)
HX_MLX5_TEST_LIBS     = libhx_mlx5.la $(IBVERBS_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += $(HX_MLX5_TESTS) test/vhca/test_mlx5_objects
TESTS          += $(HX_MLX5_TESTS) test/vhca/mlx5_objects.sh
noinst_HEADERS += test/unit/golden.h

test_unit_test_caps_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_caps_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_cmd_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_cmd_LDADD    = $(HX_MLX5_TEST_LIBS)

# Exports the function that the emulated device would
test_unit_test_counter_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_counter_LDFLAGS  = $(AM_LDFLAGS) -export-dynamic
test_unit_test_counter_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_cq_poll_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_cq_poll_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_limits_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_limits_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_prm_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_prm_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_qp_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_qp_LDADD    = $(HX_MLX5_TEST_LIBS)

# Both define what the file under test calls; the linker takes that first
test_unit_test_reg_mode_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_reg_mode_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_selftest_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_selftest_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_sq_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_sq_LDADD    = $(HX_MLX5_TEST_LIBS)

test_unit_test_umem_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_unit_test_umem_LDADD    = $(HX_MLX5_TEST_LIBS)

# Needs a device: run by mlx5_objects.sh on the emulated one
test_vhca_test_mlx5_objects_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS)
test_vhca_test_mlx5_objects_LDADD    = $(HX_MLX5_TEST_LIBS)

dist_check_SCRIPTS += test/vhca/mlx5_objects.sh

# Also on the emulated device, whose counters it reads
check_PROGRAMS     += test/vhca/test_selftest
dist_check_SCRIPTS += test/vhca/selftest.sh
TESTS              += test/vhca/selftest.sh

test_vhca_test_selftest_CPPFLAGS = $(HX_MLX5_TEST_CPPFLAGS) \
                                   -I$(top_srcdir)/test
test_vhca_test_selftest_LDADD    = libhxtest.la $(HX_MLX5_TEST_LIBS)
