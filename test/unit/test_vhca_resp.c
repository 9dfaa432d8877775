/* SPDX-License-Identifier: BSD-3-Clause */

/* What a responder looks at before it lets a request in: keys, and what its QP
 * was told of packets and messages. Both ends are in this process. */

#include "vhca_node.h"

static const struct node_cfg quick = {
    .retry_count = 1, .ack_timeout = 14 /* 67 ms */, .rnr_retry = 7,
    .min_rnr_nak = 12
};

static void both_open(struct node *a, struct node *b,
                      const struct node_cfg *a_cfg,
                      const struct node_cfg *b_cfg)
{
    node_open(a, a_cfg);
    node_open(b, b_cfg);
    a->peer = node_info(b);
    b->peer = node_info(a);
    node_connect(b, 0x504);
    node_connect(a, 0x504);
}

static void read_only_region__written_to__remote_access_error(void **state)
{
    struct node a, b;
    uint32_t index;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &quick);
    node_key(&b, b.buf, NODE_BUF, 9, "lr rr", &index);
    post      = post_rdma(&a, 0x10, 0, 0, 64);
    post.rkey = index << 8 | 9;
    node_post(&a, &post);
    cqe_is(node_poll(&a), 0, 0, 0);
    post.opcode = 0x08;
    node_post(&a, &post);
    cqe_is(node_poll(&a), 13, 0x13, 1);

    /* the responder is in error too: what it posts is flushed */
    post = post_rdma(&b, 0x08, 0, 0, 8);
    node_post(&b, &post);
    cqe_is(node_poll(&b), 13, 0x05, 0);
    node_close(&a);
    node_close(&b);
}

static void key_destroyed__used_after__remote_access_error(void **state)
{
    struct node a, b;
    struct vhca_fw fw;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &quick);
    assert_true(vhca_mkey_destroy(b.owner, b.index, &fw));
    post = post_rdma(&a, 0x08, 0, 0, 8);
    node_post(&a, &post);
    cqe_is(node_poll(&a), 13, 0x13, 0);
    node_close(&a);
    node_close(&b);
}

static void other_pd__same_process__remote_access_error(void **state)
{
    struct node a, b, c;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &quick);
    node_open(&c, &quick);
    post      = post_rdma(&a, 0x08, 0, 0, 8);
    post.addr = (uint64_t)c.buf;
    post.rkey = c.lkey;
    node_post(&a, &post);
    cqe_is(node_poll(&a), 13, 0x13, 0);
    node_close(&a);
    node_close(&b);
    node_close(&c);
}

static void packets__larger_than_its_mtu__invalid_request(void **state)
{
    static const struct node_cfg small = {
        .retry_count = 1, .ack_timeout = 14, .rnr_retry = 7, .min_rnr_nak = 12,
        .mtu = 1 /* 256 bytes */
    };
    struct node a, b;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &small);
    post = post_rdma(&a, 0x08, 0, 0, 256); /* one packet that is small enough */
    node_post(&a, &post);
    cqe_is(node_poll(&a), 0, 0, 0);
    post = post_rdma(&a, 0x08, 0, 0, 257);
    node_post(&a, &post);
    cqe_is(node_poll(&a), 13, 0x12, 1);
    node_close(&a);
    node_close(&b);

    /* smaller packets than it would take are no mistake */
    both_open(&a, &b, &small, &quick);
    post = post_rdma(&a, 0x08, 0, 0, 5000);
    node_post(&a, &post);
    cqe_is(node_poll(&a), 0, 0, 0);
    node_close(&a);
    node_close(&b);
}

static void message__longer_than_its_limit__invalid_request(void **state)
{
    static const struct node_cfg small = {
        .retry_count = 1, .ack_timeout = 14, .rnr_retry = 7, .min_rnr_nak = 12,
        .log_msg_max = 12
    };
    struct node a, b;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &small);
    post = post_rdma(&a, 0x08, 0, 0, 4096);
    node_post(&a, &post);
    cqe_is(node_poll(&a), 0, 0, 0);
    post = post_rdma(&a, 0x08, 0, 0, 4097);
    node_post(&a, &post);
    cqe_is(node_poll(&a), 13, 0x12, 1);
    node_close(&a);
    node_close(&b);
}

static void message__of_no_byte__no_key_is_looked_at(void **state)
{
    struct node a, b;
    struct post post;

    (void)state;
    both_open(&a, &b, &quick, &quick);
    post      = post_rdma(&a, 0x08, 0, 0, 0);
    post.rkey = 0x7777;
    post.addr = 0x7777;
    post.nseg = 0;
    node_post(&a, &post);
    cqe_is(node_poll(&a), 0, 0, 0);
    node_close(&a);
    node_close(&b);
}

/* ---- there is room for so many ---- */

static void mkey_create__table_full__no_resources(void **state)
{
    struct vhca_mkey_attr attr = {
        .start = 0x1000, .len = 4096, .qpn = 0xffffff, .lr = true
    };
    struct vhca_fw fw = {0};
    uint32_t index, last = 0, count = 0;
    struct node n;

    (void)state;
    node_open(&n, &quick); /* two keys */
    attr.owner = n.owner;
    attr.pdn   = n.pdn;
    while (vhca_mkey_create(&attr, &index, &fw)) {
        last = index;
        ++count;
    }
    assert_int_equal(fw.status, VHCA_FW_NO_RESOURCES);
    assert_int_equal(fw.syndrome, 0);
    assert_int_equal(count, (1u << NIC_LOG_MKEYS) - 2);
    assert_true(vhca_mkey_destroy(n.owner, last, &fw));
    assert_true(vhca_mkey_create(&attr, &index, &fw));
    assert_int_not_equal(index, last); /* whoever kept the old one has none */
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_only_region__written_to__remote_access_error),
        cmocka_unit_test(key_destroyed__used_after__remote_access_error),
        cmocka_unit_test(other_pd__same_process__remote_access_error),
        cmocka_unit_test(packets__larger_than_its_mtu__invalid_request),
        cmocka_unit_test(message__longer_than_its_limit__invalid_request),
        cmocka_unit_test(message__of_no_byte__no_key_is_looked_at),
        cmocka_unit_test(mkey_create__table_full__no_resources)
    };

    return cmocka_run_group_tests(tests, node_group_setup, node_group_teardown);
}
