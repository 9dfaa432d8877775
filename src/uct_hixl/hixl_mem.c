/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory that the domain allocates: shared pages, huge ones where there are. */

#include "hixl_md.h"
#include "hixl_reg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <unistd.h>

/* Rounding up to huge pages may cost this part of the length at most */
#define UCT_HIXL_MEM_HUGE_WASTE 4

/* MAP_SHARED of a memfd that nobody can make shorter; MAP_FAILED with errno.
 * The descriptor is the caller's to close. */
static void *uct_hixl_mem_map_memfd(void *hint, size_t length, unsigned flags,
                                    int *fd_p)
{
    void *address = MAP_FAILED;
    int saved_errno;
    int fd;

    fd = memfd_create("hixl", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0) {
        return MAP_FAILED;
    }

    if (ftruncate(fd, length) == 0) {
        /* An emulated device maps in the peer what cannot shrink */
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        address = mmap(hint, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }

    if (address == MAP_FAILED) {
        saved_errno = errno;
        close(fd);
        errno = saved_errno;
        return MAP_FAILED;
    }

    *fd_p = fd;
    return address;
}

/* fd_p: what it is mapped from, or -1 */
static void *uct_hixl_mem_map(void *hint, size_t *length_p, int *fd_p)
{
    ssize_t huge_size = ucs_get_huge_page_size();
    size_t length;
    void *address;

    if ((huge_size > 0) && (*length_p <= SIZE_MAX - huge_size)) {
        length = ucs_align_up(*length_p, (size_t)huge_size);
        if (length - *length_p <= *length_p / UCT_HIXL_MEM_HUGE_WASTE) {
            /* The mapping reserves its pages, or fails: no SIGBUS later */
            address = uct_hixl_mem_map_memfd(hint, length, MFD_HUGETLB,
                                             fd_p);
            if (address != MAP_FAILED) {
                *length_p = length;
                return address;
            }
            ucs_trace("no huge pages for %zu bytes: %m", length);
        }
    }

    length  = ucs_align_up(*length_p, ucs_get_page_size());
    address = uct_hixl_mem_map_memfd(hint, length, 0, fd_p);
    if (address == MAP_FAILED) {
        /* Out of file descriptors, for one; it need not have a name */
        *fd_p   = -1;
        address = mmap(hint, length, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    if (address == MAP_FAILED) {
        return NULL;
    }

    /* A hint: the kernel may not make huge pages of shared memory */
    (void)madvise(address, length, MADV_HUGEPAGE);
    *length_p = length;
    return address;
}

ucs_status_t
uct_hixl_md_mem_alloc(uct_md_h tl_md, size_t *length_p, void **address_p,
                      ucs_memory_type_t mem_type,
                      ucs_sys_device_t sys_dev UCS_V_UNUSED, unsigned flags,
                      const char *alloc_name, uct_mem_h *memh_p)
{
    const uct_hixl_md_t *md = ucs_derived_of(tl_md, uct_hixl_md_t);
    size_t length           = *length_p;
    uct_hixl_mem_t *mem;
    ucs_status_t status;
    char hint[HX_LIMIT_HINT_MAX];
    void *address;
    int fd, err;

    if (mem_type != UCS_MEMORY_TYPE_HOST) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((length == 0) || (length > SIZE_MAX - ucs_get_page_size())) {
        return UCS_ERR_INVALID_PARAM;
    }

    address = uct_hixl_mem_map(*address_p, &length, &fd);
    if (address == NULL) {
        err = errno;
        ucs_error("%s: cannot map %zu bytes for %s: %s%s", md->dev->name,
                  length, alloc_name, strerror(err),
                  hx_limit_hint(HX_LIMIT_MAP, err, hint, sizeof(hint)));
        return UCS_ERR_NO_MEMORY;
    }

    /* The descriptor is there while the key is made: how an emulated device
     * without privileges finds the file */
    status = uct_hixl_mem_reg(md, address, length, flags, &mem);
    if (fd >= 0) {
        close(fd);
    }
    if (status != UCS_OK) {
        munmap(address, length);
        return status;
    }

    *length_p  = length;
    *address_p = address;
    *memh_p    = mem;
    return UCS_OK;
}

ucs_status_t uct_hixl_md_mem_free(uct_md_h tl_md UCS_V_UNUSED, uct_mem_h memh)
{
    uct_hixl_mem_t *mem = memh;
    void *address       = mem->address;
    size_t length       = mem->length;

    uct_hixl_mem_dereg(mem);
    if (munmap(address, length) != 0) {
        ucs_error("cannot unmap %p..%p: %m", address,
                  UCS_PTR_BYTE_OFFSET(address, length));
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}
