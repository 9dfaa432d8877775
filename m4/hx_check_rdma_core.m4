# SPDX-License-Identifier: BSD-3-Clause
# HX_CHECK_RDMA_CORE: libibverbs and libmlx5 with the DevX calls that the
# device half uses. Sets IBVERBS_CFLAGS and IBVERBS_LIBS (both libraries).

AC_DEFUN([HX_CHECK_RDMA_CORE], [
    PKG_CHECK_MODULES([IBVERBS], [libibverbs >= 1.11 libmlx5 >= 1.21], [],
        [AC_MSG_ERROR([libibverbs or libmlx5 of rdma-core 35 or newer is missing: $IBVERBS_PKG_ERRORS
  type: $srcdir/contrib/install-deps   (Debian: libibverbs-dev)])])
    IBVERBS_VERSION=`$PKG_CONFIG --modversion libibverbs`
    MLX5_VERSION=`$PKG_CONFIG --modversion libmlx5`

    hx_save_CFLAGS=$CFLAGS
    hx_save_LIBS=$LIBS
    CFLAGS="$CFLAGS $IBVERBS_CFLAGS"
    LIBS="$IBVERBS_LIBS $LIBS"
    AC_MSG_CHECKING([for DevX in libmlx5])
    AC_LINK_IFELSE([AC_LANG_PROGRAM(
        [[#include <infiniband/mlx5dv.h>]],
        [[struct mlx5dv_context_attr attr = {
              .flags = MLX5DV_CONTEXT_FLAGS_DEVX
          };
          struct ibv_context *ctx = mlx5dv_open_device(0, &attr);
          return !mlx5dv_devx_umem_reg(ctx, 0, 0, 0) ||
                 !mlx5dv_devx_obj_create(ctx, 0, 0, 0, 0) ||
                 !mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC) ||
                 !mlx5dv_devx_create_event_channel(ctx, 0);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([libmlx5 $MLX5_VERSION has no DevX calls (see config.log); rdma-core 35 or newer has them])])
    CFLAGS=$hx_save_CFLAGS
    LIBS=$hx_save_LIBS
])
