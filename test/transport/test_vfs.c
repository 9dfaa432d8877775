/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What UCX's virtual file system shows of the transport, read from inside the
 * process, as UCX's own client for it does.
 */

#include <support/peers.h>
#include <support/ucp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include <ucs/vfs/base/vfs_obj.h>

#define LEN  (1ul << 20)
#define ROOT "/uct/component/hixl/memory_domain/hixl_mlx5_0/registration/"

/* What stands in a file, without its end of line */
static void read_file(const char *path, char *text, size_t size)
{
    ucs_string_buffer_t strb;
    ucs_status_t status;

    ucs_string_buffer_init(&strb);
    status = ucs_vfs_path_read_file(path, &strb);
    HXT_CHECK(status == UCS_OK, "%s: %s", path, ucs_status_string(status));
    snprintf(text, size, "%s", ucs_string_buffer_cstr(&strb));
    text[strcspn(text, "\n")] = '\0';
    ucs_string_buffer_cleanup(&strb);
}

static unsigned long read_number(const char *path)
{
    char text[64], *end;
    unsigned long value;

    read_file(path, text, sizeof(text));
    value = strtoul(text, &end, 10);
    HXT_CHECK((end != text) && (*end == '\0'), "%s: %s", path, text);
    return value;
}

/* What a directory has: a callback may not look any further itself */
struct names {
    char     name[256][96];
    unsigned count;
};

static void add_name(const char *name, void *arg)
{
    struct names *names = arg;

    HXT_CHECK(names->count < 256, "more than 256 entries");
    snprintf(names->name[names->count++], sizeof(names->name[0]), "%s", name);
}

/* Looks below dir for a file of this name, the path of which has `inside` */
static bool search(const char *dir, const char *name, const char *inside,
                   char *found, size_t size)
{
    struct names *names = calloc(1, sizeof(*names));
    ucs_vfs_path_info_t info;
    bool is_found = false;
    char path[512];
    unsigned i;

    HXT_CHECK(names != NULL, "no memory");
    ucs_vfs_path_list_dir(dir, add_name, names);
    for (i = 0; !is_found && (i < names->count); ++i) {
        snprintf(path, sizeof(path), "%.400s/%s", dir, names->name[i]);
        if (ucs_vfs_path_get_info(path, &info) != UCS_OK) {
            continue;
        }
        if (S_ISDIR(info.mode)) {
            is_found = search(path, name, inside, found, size);
        } else if ((strcmp(names->name[i], name) == 0) &&
                   (strstr(path, inside) != NULL)) {
            snprintf(found, size, "%s", path);
            is_found = true;
        }
    }

    free(names);
    return is_found;
}

/* The directory of an interface has an address in its name */
static void iface_file(const char *name, char *path, size_t size)
{
    char found[512];

    HXT_CHECK(search("/uct", "tx_credits", "/iface/", found, sizeof(found)),
              "no interface is shown");
    *strrchr(found, '/') = '\0';
    snprintf(path, size, "%.480s/%s", found, name);
}

static void check_budget(const char *when, unsigned long live,
                         unsigned long exposed, unsigned long bytes)
{
    unsigned long got[3] = {
        read_number(ROOT "live"), read_number(ROOT "exposed"),
        read_number(ROOT "bytes")
    };

    HXT_CHECK((got[0] == live) && (got[1] == exposed) && (got[2] == bytes),
              "%s: live %lu exposed %lu bytes %lu, expected %lu %lu %lu", when,
              got[0], got[1], got[2], live, exposed, bytes);
}

static void run_budget(struct hxt_proc *proc)
{
    void *memory = hxt_alloc(LEN);
    struct hxt_ucp u;
    ucp_mem_h memh;
    size_t size;
    void *rkey;
    char text[128];

    hxt_ucp_open(&u, proc, UCP_FEATURE_RMA);
    read_file("/uct/component/hixl/memory_domain/hixl_mlx5_0/device", text,
              sizeof(text));
    HXT_CHECK(strcmp(text, "mlx5_0") == 0, "device %s", text);
    HXT_CHECK(read_number(ROOT "limit") == 17, "the limit is not 17");
    HXT_CHECK(read_number(ROOT "bytes_limit") == 3ul << 30, "not 3 GiB");
    check_budget("at first", 0, 0, 0);

    memh = hxt_ucp_map(&u, memory, LEN);
    check_budget("mapped", 1, 0, LEN);
    HXT_CHECK(ucp_rkey_pack(u.context, memh, &rkey, &size) == UCS_OK,
              "ucp_rkey_pack");
    check_budget("packed", 1, 1, LEN);
    read_file(ROOT "mode", text, sizeof(text));
    HXT_CHECK(strncmp(text, "umem: ", 6) == 0, "mode %s", text);

    ucp_rkey_buffer_release(rkey);
    hxt_ucp_unmap(&u, memh);
    check_budget("unmapped", 0, 0, 0);
    hxt_ucp_close(&u);
}

static void run_iface(struct hxt_proc *proc)
{
    char path[512], text[64];
    struct hxt_ucp u;

    hxt_ucp_open(&u, proc, HXT_UCP_FEATURES);
    iface_file("endpoints", path, sizeof(path));
    HXT_CHECK(read_number(path) == 0, "an endpoint is there already");

    hxt_ucp_connect_all(&u, false);
    hxt_ucp_flush(&u, u.ep[!proc->rank]);
    HXT_CHECK(read_number(path) == 1, "%lu endpoints", read_number(path));

    iface_file("port", path, sizeof(path));
    read_file(path, text, sizeof(text));
    HXT_CHECK(strcmp(text, "mlx5_0:1") == 0, "port %s", text);
    iface_file("tx_credits", path, sizeof(path));
    HXT_CHECK(read_number(path) > 0, "no credits");
    iface_file("bounced_bytes/put", path, sizeof(path));
    HXT_CHECK(read_number(path) == 0, "bounced bytes");
    iface_file("bounced_bytes/get", path, sizeof(path));
    HXT_CHECK(read_number(path) == 0, "bounced bytes");
    iface_file("bounced_bytes/am", path, sizeof(path));
    HXT_CHECK(read_number(path) == 0, "bounced bytes");
    hxt_ucp_close(&u);
}

static void md_registration__map_pack_unmap__numbers_follow(void **state)
{
    static const char *const env[] = {
        "UCX_HIXL_MAX_REGS=17", "UCX_HIXL_MAX_HOST_MEM=3g",
        "UCX_HIXL_REG=umem", NULL
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "budget", .count = 1, .env = env
    });
}

static void iface__connected__endpoint_and_port_are_shown(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){ .scenario = "iface", .count = 2 });
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "budget", run_budget },
        { "iface", run_iface },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(md_registration__map_pack_unmap__numbers_follow),
        TEST(iface__connected__endpoint_and_port_are_shown)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
