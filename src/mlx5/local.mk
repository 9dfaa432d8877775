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
    src/mlx5/log.c \
    src/mlx5/mkey.c \
    src/mlx5/mmio.h \
    src/mlx5/prm.h \
    src/mlx5/prm_access.h \
    src/mlx5/qp.c \
    src/mlx5/sq.h \
    src/mlx5/srq.c \
    src/mlx5/umem.c \
    src/mlx5/umem.h \
    src/mlx5/wqe.h
libhx_mlx5_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
libhx_mlx5_la_LIBADD   = $(IBVERBS_LIBS)
