/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UCX_HIXL_REG given to a memory domain when it is opened, and not by the
 * environment: on a device that takes keys over umems and on one that refuses
 * them, which mode opens, and what its keys are.
 */

#include <support/peers.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <uct/api/uct.h>

#define LEN 100000

#define OK(_call) \
    do { \
        ucs_status_t ok_status = (_call); \
        HXT_CHECK(ok_status == UCS_OK, "%s: %s", #_call, \
                  ucs_status_string(ok_status)); \
    } while (0)

static uct_component_h hixl_component(void)
{
    uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME };
    uct_component_h *components, found = NULL;
    unsigned count, i;

    OK(uct_query_components(&components, &count));
    for (i = 0; i < count; i++) {
        OK(uct_component_query(components[i], &attr));
        if (strcmp(attr.name, "hixl") == 0) {
            found = components[i];
        }
    }
    uct_release_component_list(components);
    HXT_CHECK(found != NULL, "no component hixl");
    return found;
}

static ucs_status_t open_md(const char *reg, uct_md_h *md_p)
{
    uct_component_h component = hixl_component();
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_md_resource_desc_t *mds;
    uct_md_config_t *config;
    ucs_status_t status;

    OK(uct_component_query(component, &attr));
    HXT_CHECK(attr.md_resource_count > 0, "no memory domain");
    mds               = calloc(attr.md_resource_count, sizeof(*mds));
    HXT_CHECK(mds != NULL, "no memory");
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = mds;
    OK(uct_component_query(component, &attr));

    OK(uct_md_config_read(component, NULL, NULL, &config));
    OK(uct_config_modify(config, "REG", reg));
    status = uct_md_open(component, mds[0].md_name, config, md_p);
    uct_config_release(config);
    free(mds);
    return status;
}

/* Registers memory and looks which kind of key it got. */
static void check_key(struct hxt_proc *proc, uct_md_h md, bool mr)
{
    void *memory = hxt_alloc(LEN);
    uct_mem_h memh;

    OK(uct_md_mem_reg(md, memory, LEN, UCT_MD_MEM_ACCESS_ALL, &memh));
    HXT_CHECK(hxt_proc_stat(proc, "mkey_remote") == !mr, "%s key over a umem",
              mr ? "a" : "no");
    HXT_CHECK(hxt_proc_stat(proc, "mr_remote") == mr, "%s MR",
              mr ? "no" : "an");
    OK(uct_md_mem_dereg(md, memh));
    uct_md_close(md);
    HXT_CHECK(hxt_proc_stat(proc, "mkey_remote") == 0 &&
              hxt_proc_stat(proc, "mr_remote") == 0, "a key is left");
}

static void run_taken(struct hxt_proc *proc)
{
    uct_md_h md;

    OK(open_md("umem", &md));
    check_key(proc, md, false);
    OK(open_md("auto", &md));
    check_key(proc, md, false);
    OK(open_md("mr", &md));
    check_key(proc, md, true);
}

static void run_refused(struct hxt_proc *proc)
{
    ucs_status_t status;
    uct_md_h md;

    status = open_md("umem", &md);
    HXT_CHECK(status == UCS_ERR_UNSUPPORTED, "umem: %s",
              ucs_status_string(status));
    OK(open_md("auto", &md));
    check_key(proc, md, true);
    OK(open_md("mr", &md));
    check_key(proc, md, true);
}

static void md_open__keys_over_umems_taken__each_mode_its_keys(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){ .scenario = "taken", .count = 1 });
}

static void md_open__keys_over_umems_refused__umem_says_what_to_do(void **state)
{
    static const char *const env[] = { "VHCA_FAULT=mkey_umem=refuse", NULL };
    static const char *const message[] = {
        "not usable with UCX_HIXL_REG=umem", "CREATE_MKEY failed",
        "set UCX_HIXL_REG=mr", NULL
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario   = "refused",
        .count      = 1,
        .env        = env,
        .expect_log = message
    });
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "taken", run_taken },
        { "refused", run_refused },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(md_open__keys_over_umems_taken__each_mode_its_keys),
        TEST(md_open__keys_over_umems_refused__umem_says_what_to_do)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
