/* SPDX-License-Identifier: BSD-3-Clause */

/* Limits of the process that are named when something runs into them. */

#include <mlx5/hx.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 2000000l /* more mappings than any usual limit */

static const char *hint(enum hx_limit_use use, int err)
{
    static char buf[HX_LIMIT_HINT_MAX];

    errno = ERANGE;
    assert_ptr_equal(hx_limit_hint(use, err, buf, sizeof(buf)), buf);
    assert_int_equal(errno, ERANGE);
    assert_true(strlen(buf) < sizeof(buf) - 1); /* nothing was cut off */
    return buf;
}

static void assert_names(const char *text, const char *limit,
                         const char *value, const char *remedy)
{
    if ((strncmp(text, "; ", 2) != 0) || (strstr(text, limit) == NULL) ||
        (strstr(text, value) == NULL) || (strstr(text, remedy) == NULL)) {
        fail_msg("\"%s\" does not name %s, %s and %s", text, limit, value,
                 remedy);
    }
}

static void hint__no_limit__is_empty(void **state)
{
    (void)state;
    assert_string_equal(hint(HX_LIMIT_OPEN, EACCES), "");
    assert_string_equal(hint(HX_LIMIT_OPEN, ENOMEM), "");
    assert_string_equal(hint(HX_LIMIT_PIN, EFAULT), "");
    assert_string_equal(hint(HX_LIMIT_MAP, EINVAL), "");
}

static void hint__no_descriptor__limit_of_files(void **state)
{
    struct rlimit saved, limit;
    const char *text;
    int fd, last = -1;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    limit          = saved;
    limit.rlim_cur = 77;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((fd = dup(0)) >= 0) {
        last = fd;
    }
    assert_int_equal(errno, EMFILE);
    text = hint(HX_LIMIT_OPEN, errno);
    while (last > 2) {
        close(last--);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
    assert_names(text, "open files", "77", "ulimit -n");
    assert_names(hint(HX_LIMIT_OPEN, ENFILE), "the system", "open files",
                 "fs.file-max");
}

static void hint__no_memory_to_pin__memlock(void **state)
{
    struct rlimit saved, limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &saved), 0);
    limit          = saved;
    limit.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_names(hint(HX_LIMIT_PIN, ENOMEM), "RLIMIT_MEMLOCK", "64 KiB",
                 "ulimit -l");
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &saved), 0);
}

/* One reservation; each page that is made readable splits it once more. */
static void hint__too_many_mappings__max_map_count(void **state)
{
    size_t page = sysconf(_SC_PAGESIZE), len = PAGES * page;
    char value[32]      = "";
    const char *text    = "";
    char *area;
    FILE *file;
    long i;

    (void)state;
    file = fopen("/proc/sys/vm/max_map_count", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%31s", value), 1);
    fclose(file);
    assert_true(strtol(value, NULL, 10) > 0);
    if (strtol(value, NULL, 10) > PAGES / 2) {
        assert_string_equal(hint(HX_LIMIT_MAP, ENOMEM), "");
        return;
    }

    area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
                MAP_NORESERVE, -1, 0);
    assert_true(area != MAP_FAILED);
    assert_string_equal(hint(HX_LIMIT_MAP, ENOMEM), "");
    for (i = 1; i < PAGES; i += 2) {
        if (mprotect(area + i * page, page, PROT_READ) != 0) {
            assert_int_equal(errno, ENOMEM);
            text = hint(HX_LIMIT_MAP, ENOMEM);
            break;
        }
    }
    munmap(area, len);
    assert_names(text, "vm.max_map_count", value, "sysctl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hint__no_limit__is_empty),
        cmocka_unit_test(hint__no_descriptor__limit_of_files),
        cmocka_unit_test(hint__no_memory_to_pin__memlock),
        cmocka_unit_test(hint__too_many_mappings__max_map_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
