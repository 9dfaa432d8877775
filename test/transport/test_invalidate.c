/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys that are taken back (UCT_MD_FLAG_INVALIDATE): once their owner was told
 * that one is dead, a peer that still writes with it fails and moves no byte,
 * while another key of the same memory works; endpoints that are invalidated;
 * and what UCP makes of it: rendezvous with error handling moves data without
 * copies. Process 0 uses the memory of process 1.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>
#include <support/uct.h>

#include <uct/api/v2/uct_v2.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MEM_LEN 65536ul
#define BIG     (1ul << 20)
#define WITHIN  5.0 /* seconds: then everybody knows */

/* libuct exports it, and declares it in a header that it does not install */
ucs_status_t uct_ep_invalidate(uct_ep_h ep, unsigned flags);

static struct hxt_uct u;

static struct hxt_failure seen;

static void begin(struct hxt_proc *proc)
{
    hxt_uct_on_error(hxt_uct_note_failure, &seen);
    hxt_uct_open(&u, proc, MEM_LEN, false);
}

static void put(uct_ep_h ep, const char *text, uct_rkey_t rkey)
{
    ucs_status_t status;

    do {
        hxt_uct_progress(&u);
        status = uct_ep_put_short(ep, text, strlen(text) + 1, u.peer_addr,
                                  rkey);
    } while (status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
}

static void flush(uct_ep_h ep)
{
    ucs_status_t status;

    do {
        hxt_uct_progress(&u);
        status = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    } while (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "flush: %s", ucs_status_string(status));
}

static void fails(uct_ep_h ep, ucs_status_t expected)
{
    double end = hxt_seconds() + WITHIN;

    while (seen.calls == 0) {
        HXT_CHECK(hxt_seconds() < end, "nobody was told");
        hxt_uct_progress(&u);
    }
    HXT_CHECK(seen.ep == ep && seen.status == expected, "%s",
              ucs_status_string(seen.status));
}

/* ---- a key ---- */

/* A second registration of u.mem, with a key that can be taken back */
static uct_mem_h register_again(void *buffer)
{
    const uct_md_mkey_pack_params_t params = {
        .field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS,
        .flags      = UCT_MD_MKEY_PACK_FLAG_INVALIDATE
    };
    uct_mem_h memh;

    HXT_CHECK(uct_md_mem_reg(u.md, u.mem.addr, u.mem.len,
                             UCT_MD_MEM_ACCESS_ALL, &memh) == UCS_OK, "reg");
    HXT_CHECK(uct_md_mkey_pack_v2(u.md, memh, &params, buffer) == UCS_OK,
              "pack");
    return memh;
}

static void take_back(uct_mem_h memh)
{
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                      UCT_MD_MEM_DEREG_FIELD_FLAGS |
                      UCT_MD_MEM_DEREG_FIELD_COMPLETION,
        .flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE,
        .memh       = memh
    };
    struct hxt_uct_comp comp;

    hxt_uct_comp_init(&comp);
    params.comp = &comp.super;
    HXT_CHECK(uct_md_mem_dereg_v2(u.md, &params) == UCS_OK, "dereg");
    HXT_CHECK(comp.called == 1, "nobody was told");
}

static void run_key(struct hxt_proc *proc)
{
    char buffer[64] = { 0 };
    struct hxt_blob *blobs;
    uct_rkey_bundle_t rkey;
    uct_mem_h memh = NULL;
    uct_ep_h ep;

    begin(proc);
    if (proc->rank == 1) {
        memh = register_again(buffer);
    }
    blobs = hxt_gather(proc, buffer, sizeof(buffer));
    if (proc->rank == 0) {
        HXT_CHECK(uct_rkey_unpack(u.component, blobs[1].data, &rkey) == UCS_OK,
                  "unpack");
        HXT_CHECK(rkey.rkey != u.peer_rkey.rkey, "one key for both");
        put(u.ep, "with the key", rkey.rkey);
        flush(u.ep);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        HXT_CHECK(strcmp((char*)u.mem.addr, "with the key") == 0, "not there");
        take_back(memh);
    }
    hxt_barrier(proc);
    if (proc->rank == 0) {
        ep = hxt_uct_ep_new(&u);
        put(ep, "with the other key", u.peer_rkey.rkey);
        flush(ep);
        put(u.ep, "with a dead key", rkey.rkey);
        fails(u.ep, UCS_ERR_CONNECTION_RESET);
        uct_ep_destroy(ep);
        uct_rkey_release(u.component, &rkey);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        HXT_CHECK(strcmp((char*)u.mem.addr, "with the other key") == 0,
                  "a dead key wrote \"%s\"", (char*)u.mem.addr);
    }
    free(blobs);
    hxt_uct_close(&u);
}

static void key_invalidated__peer_writes__fails_and_other_keys_work(
        void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "key", .count = 2, .deadline = 60
    });
    assert_true(hxt_stat("cqe.syndrome.0x13") == 1);
    assert_int_equal(hxt_stat("objects.mkey"), 0);
}

/* ---- an endpoint ---- */

static void run_ep(struct hxt_proc *proc)
{
    ucs_status_t status;
    uct_ep_h ep;

    begin(proc);
    if (proc->rank == 0) {
        ep = hxt_uct_ep_new(&u);
        put(ep, "before", u.peer_rkey.rkey);
        flush(ep);
        put(u.ep, "elsewhere", u.peer_rkey.rkey);
        flush(u.ep);
        HXT_CHECK(uct_ep_invalidate(ep, 0) == UCS_OK, "invalidate");
        status = uct_ep_put_short(ep, "behind", 7, u.peer_addr,
                                  u.peer_rkey.rkey);
        HXT_CHECK(status == UCS_OK || UCS_STATUS_IS_ERR(status), "put");
        status = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
        HXT_CHECK(status == UCS_INPROGRESS, "flush: %s",
                  ucs_status_string(status));
        fails(ep, UCS_ERR_CONNECTION_RESET);
        put(u.ep, "goes on", u.peer_rkey.rkey);
        flush(u.ep);
        uct_ep_destroy(ep);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        HXT_CHECK(strcmp((char*)u.mem.addr, "goes on") == 0, "\"%s\"",
                  (char*)u.mem.addr);
    }
    hxt_uct_close(&u);
}

static void ep_invalidated__next_use__fails_and_others_go_on(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "ep", .count = 2, .deadline = 60
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

/* ---- UCP's rendezvous, error mode PEER ---- */

static void on_ucp_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    HXT_CHECK(0, "an endpoint failed: %s", ucs_status_string(status));
}

static void run_rndv(struct hxt_proc *proc)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = on_ucp_error
    };
    uint8_t *buf = hxt_alloc(BIG);
    struct hxt_blob *addresses;
    ucp_mem_h memh;
    struct hxt_ucp p;
    ucp_ep_h ep;

    hxt_ucp_open(&p, proc, HXT_UCP_FEATURES);
    addresses      = hxt_ucp_gather_addresses(&p);
    params.address = addresses[1 - proc->rank].data;
    HXT_CHECK(ucp_ep_create(p.worker, &params, &ep) == UCS_OK, "ep_create");
    memh = hxt_ucp_map(&p, buf, BIG); /* UCP's own registration shares it */
    if (proc->rank == 0) {
        hxt_fill(buf, BIG, 1, 0);
        hxt_ucp_ok(&p, "send", hxt_ucp_isend(&p, ep, buf, BIG, 1, NULL));
    } else {
        hxt_ucp_ok(&p, "receive", hxt_ucp_irecv(&p, buf, BIG, 1, NULL));
        hxt_verify("received", buf, BIG, 1, 0);
    }
    hxt_barrier(proc);
    hxt_ucp_unmap(&p, memh);
    hxt_ucp_ep_close(&p, ep);
    free(addresses);
    hxt_ucp_close(&p);
}

static void rndv__error_mode_peer__zero_copy(void **state)
{
    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "rndv", .count = 2, .deadline = 60
    });
    assert_true(hxt_stat("bytes.rdma_read") +
                hxt_stat("bytes.rdma_write") >= BIG);
    assert_true(hxt_stat("bytes.send") < BIG / 2);
    assert_int_equal(hxt_stat("cqe.error"), 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "ep", run_ep },
        { "key", run_key },
        { "rndv", run_rndv },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(key_invalidated__peer_writes__fails_and_other_keys_work),
        TEST(ep_invalidated__next_use__fails_and_others_go_on),
        TEST(rndv__error_mode_peer__zero_copy)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
