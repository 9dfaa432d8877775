/* SPDX-License-Identifier: BSD-3-Clause */

/* Execution of send WQEs between two processes: the bytes, the completions,
 * and what each kind of mistake gives. */

#include "vhca_node.h"

static const struct node_cfg quick = {
    .retry_count = 1, .ack_timeout = 14 /* 67 ms */, .rnr_retry = 7,
    .min_rnr_nak = 12
};

static unsigned seed;

static void fill(uint8_t *at, size_t len)
{
    size_t i;

    for (i = 0; i < len; ++i) {
        at[i] = rand_r(&seed);
    }
}

/* What the peer has at off is what we have at our_off */
static void peer_has(struct peer *p, uint32_t off, const uint8_t *ours,
                     uint32_t len)
{
    peer_call(p, PEER_GET, off, len, 0);
    assert_memory_equal(p->page->data, ours, len);
}

static void rdma_write__odd_sizes_and_offsets__every_byte_arrives(void **state)
{
    static const uint32_t sizes[] = { 1, 3, 8, 63, 64, 65, 4095, 4096, 4097,
                                      65537, 300001 };
    struct node n;
    struct peer p;
    unsigned i;

    (void)state;
    pair_open(&n, &p, &quick);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        uint32_t off = rand_r(&seed) % 5000, roff = rand_r(&seed) % 5000;
        struct post post = post_rdma(&n, 0x08, off, roff, sizes[i]);
        const struct cqe64 *cqe;
        uint16_t index;

        fill(n.buf + off, sizes[i]);
        /* the bytes on either side must stay */
        memset(p.page->data, 0xee, sizes[i] + 2);
        peer_call(&p, PEER_SET, roff == 0 ? 0 : roff - 1, sizes[i] + 2, 0);
        index = node_post(&n, &post);
        cqe   = node_poll(&n); /* executed in this thread: it is there */
        cqe_is(cqe, 0, 0, index);
        assert_int_equal(be32toh(cqe->sop_drop_qpn), 0x08000000u | n.qpn);
        assert_int_equal(be32toh(cqe->srqn_uidx), 0xabcdef);
        peer_has(&p, roff, n.buf + off, sizes[i]);
        peer_call(&p, PEER_GET, roff + sizes[i], 1, 0);
        assert_int_equal(p.page->data[0], 0xee);
    }
    pair_close(&n, &p);
}

static void rdma_write__inline_up_to_the_wqe_limit__arrives(void **state)
{
    struct post post = { .opcode = 0x08, .fm_ce_se = 8, .raddr = true };
    uint8_t data[988];
    struct node n;
    struct peer p;
    uint16_t index;
    uint32_t len;

    (void)state;
    pair_open(&n, &p, &quick);
    for (len = 0; len <= sizeof(data); len += (len < 30) ? 1 : 137) {
        fill(data, sizeof(data));
        post.addr    = n.peer.buf + len;
        post.rkey    = n.peer.rkey;
        post.inl     = data;
        post.inl_len = len;
        index        = node_post(&n, &post);
        cqe_is(node_poll(&n), 0, 0, index);
        peer_has(&p, len, data, len);
    }
    pair_close(&n, &p);
}

/* UCX's zero-copy active messages: a header in the WQE, then the data. The
 * queue has 64 blocks, so in 40 turns the header also wraps. */
static void rdma_write__inline_before_pointers__join_in_order(void **state)
{
    struct post post;
    uint8_t hdr[150];
    struct node n;
    struct peer p;
    uint16_t index;
    unsigned i;

    (void)state;
    pair_open(&n, &p, &quick);
    for (i = 0; i < 40; ++i) {
        uint32_t hdr_len = (i * 7) % sizeof(hdr) + 1;
        uint32_t len     = rand_r(&seed) % 5000 + 1;

        fill(hdr, hdr_len);
        fill(n.buf, len);
        post         = post_rdma(&n, 0x08, 0, 11, len);
        post.inl     = hdr;
        post.inl_len = hdr_len;
        index        = node_post(&n, &post);
        cqe_is(node_poll(&n), 0, 0, index);
        peer_has(&p, 11, hdr, hdr_len);
        peer_has(&p, 11 + hdr_len, n.buf, len);
    }
    pair_close(&n, &p);
}

static void rdma__scattered_pieces__join_in_order(void **state)
{
    struct node n;
    struct peer p;
    struct post post;

    (void)state;
    pair_open(&n, &p, &quick);
    fill(n.buf, 30000);
    post         = post_rdma(&n, 0x08, 7, 100, 11);
    post.nseg    = 3;
    post.seg[1].addr = (uint64_t)n.buf + 5000;
    post.seg[1].len  = 4097;
    post.seg[1].lkey = n.lkey;
    post.seg[2].addr = (uint64_t)n.buf + 20000;
    post.seg[2].len  = 1;
    post.seg[2].lkey = n.lkey;
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 0);
    peer_has(&p, 100, n.buf + 7, 11);
    peer_has(&p, 111, n.buf + 5000, 4097);
    peer_has(&p, 4208, n.buf + 20000, 1);

    /* and back, into other places */
    post.opcode      = 0x10;
    post.seg[0].addr = (uint64_t)n.buf + 100001;
    post.seg[1].addr = (uint64_t)n.buf + 200001;
    post.seg[2].addr = (uint64_t)n.buf + 300001;
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 2);
    assert_memory_equal(n.buf + 100001, n.buf + 7, 11);
    assert_memory_equal(n.buf + 200001, n.buf + 5000, 4097);
    assert_memory_equal(n.buf + 300001, n.buf + 20000, 1);
    pair_close(&n, &p);
}

static void rdma_read__whole_buffer__every_byte_arrives(void **state)
{
    struct node n;
    struct peer p;
    struct post post;
    uint32_t i;

    (void)state;
    pair_open(&n, &p, &quick);
    fill(p.page->data, NODE_BUF);
    peer_call(&p, PEER_SET, 0, NODE_BUF, 0);
    post = post_rdma(&n, 0x10, 0, 0, NODE_BUF);
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 0);
    for (i = 0; i < NODE_BUF; ++i) {
        assert_int_equal(n.buf[i], p.page->data[i]);
    }
    pair_close(&n, &p);
}

static void send__list_and_ring__wqe_and_bytes_match(void **state)
{
    struct node_cfg cfg = quick;
    int cyclic;

    (void)state;
    for (cyclic = 0; cyclic < 2; ++cyclic) {
        const struct cqe64 *cqe;
        struct post post;
        struct node n;
        struct peer p;
        unsigned i;

        cfg.cyclic = cyclic;
        pair_open(&n, &p, &cfg);
        for (i = 0; i < 40; ++i) {
            uint32_t len = rand_r(&seed) % 4097;

            if (len == 0) {
                len = 1;
            }
            peer_call(&p, PEER_RECV, 1, NODE_RX_SIZE, 0);
            fill(n.buf + 3, len);
            post        = post_send(&n, 3, len);
            post.opcode = (i & 1) ? 0x0b : 0x0a;
            post.imm    = 0x11223344 + i;
            node_post(&n, &post);
            cqe_is(node_poll(&n), 0, 0, i);
            cqe = peer_cqe(&p);
            cqe_is(cqe, (i & 1) ? 3 : 2, 0, cyclic ? i : i % 16);
            assert_int_equal(be32toh(cqe->byte_cnt), len);
            assert_int_equal(be32toh(cqe->imm_inval_pkey),
                             (i & 1) ? 0x11223344 + i : 0);
            assert_int_equal(be32toh(cqe->sop_drop_qpn), n.peer.qpn);
            peer_has(&p, (i % 16) * NODE_RX_SIZE, n.buf + 3, len);
        }
        pair_close(&n, &p);
    }
}

static void write_imm__takes_a_receive__data_is_where_it_says(void **state)
{
    struct post post;
    struct node n;
    struct peer p;

    (void)state;
    pair_open(&n, &p, &quick);
    peer_call(&p, PEER_RECV, 1, 16, 0);
    fill(n.buf, 777);
    post     = post_rdma(&n, 0x09, 0, 50000, 777);
    post.imm = 0xcafe0001;
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 0);
    cqe_is(peer_cqe(&p), 1, 0, 0);
    assert_int_equal(be32toh(p.page->cqe.imm_inval_pkey), 0xcafe0001);
    peer_has(&p, 50000, n.buf, 777);
    pair_close(&n, &p);
}

static void unsignaled__only_the_asked_one_completes__in_order(void **state)
{
    struct post post;
    struct node n;
    struct peer p;
    unsigned i;

    (void)state;
    pair_open(&n, &p, &quick);
    for (i = 0; i < 200; ++i) {
        post          = post_rdma(&n, 0x08, 0, i, 1);
        post.fm_ce_se = (i % 10 == 9) ? 8 : 0;
        n.buf[0]      = i;
        node_post(&n, &post);
        if (i % 10 == 9) {
            cqe_is(node_poll(&n), 0, 0, i);
        }
        assert_null(node_poll(&n));
    }
    post = (struct post) { .opcode = 0, .fm_ce_se = 0x88 };
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 200);
    peer_call(&p, PEER_GET, 0, 200, 0);
    for (i = 0; i < 200; ++i) {
        assert_int_equal(p.page->data[i], i);
    }
    pair_close(&n, &p);
}

static void atomics__cs_fa_and_masked__as_the_prm_says(void **state)
{
    uint64_t value = 0x1122334455667788ull, was;
    struct node n;
    struct peer p;
    struct post post;

    (void)state;
    pair_open(&n, &p, &quick);
    memcpy(p.page->data, &value, 8);
    peer_call(&p, PEER_SET, 64, 8, 0);

    /* fetch and add: the operand segment goes where data would */
    post = post_rdma(&n, 0x12, 0, 64, 8);
    node_write_wqe(&n, &post);
    n.pi = 0;
    node_be(&n, 4, n.qpn << 8 | 4, 4);
    node_be(&n, 32, 5, 8);
    node_be(&n, 40, 0, 8);
    node_be(&n, 48, 8, 4);
    node_be(&n, 52, n.lkey, 4);
    node_be(&n, 56, (uint64_t)n.buf, 8);
    n.pi = 1;
    assert_int_equal(node_ring(&n), 0);
    cqe_is(node_poll(&n), 0, 0, 0);
    memcpy(&was, n.buf, 8);
    assert_true(was == value);
    peer_call(&p, PEER_GET, 64, 8, 0);
    memcpy(&was, p.page->data, 8);
    assert_true(was == value + 5);

    /* compare and swap that matches */
    post = post_rdma(&n, 0x11, 0, 64, 8);
    node_write_wqe(&n, &post);
    n.pi = 1;
    node_be(&n, 4, n.qpn << 8 | 4, 4);
    node_be(&n, 32, 42, 8);
    node_be(&n, 40, value + 5, 8);
    node_be(&n, 48, 8, 4);
    node_be(&n, 52, n.lkey, 4);
    node_be(&n, 56, (uint64_t)n.buf, 8);
    n.pi = 2;
    assert_int_equal(node_ring(&n), 0);
    cqe_is(node_poll(&n), 0, 0, 1);
    peer_call(&p, PEER_GET, 64, 8, 0);
    memcpy(&was, p.page->data, 8);
    assert_true(was == 42);

    /* masked, 4 bytes: swap the low byte only, whatever is there */
    post       = post_rdma(&n, 0x14, 0, 64, 4);
    post.opmod = 8;
    node_write_wqe(&n, &post);
    n.pi = 2;
    node_be(&n, 4, n.qpn << 8 | 4, 4);
    node_be(&n, 32, 0xffffffff, 4);
    node_be(&n, 36, 0, 4);
    node_be(&n, 40, 0xff, 4);
    node_be(&n, 44, 0, 4);
    node_be(&n, 48, 4, 4);
    node_be(&n, 52, n.lkey, 4);
    node_be(&n, 56, (uint64_t)n.buf, 8);
    n.pi = 3;
    assert_int_equal(node_ring(&n), 0);
    cqe_is(node_poll(&n), 0, 0, 2);
    assert_int_equal(be32toh(*(uint32_t*)(void*)n.buf), 42);
    peer_call(&p, PEER_GET, 64, 8, 0);
    memcpy(&was, p.page->data, 8);
    assert_true(was == 255);

    /* a misaligned one is invalid */
    post = post_rdma(&n, 0x12, 0, 65, 8);
    node_write_wqe(&n, &post);
    n.pi = 3;
    node_be(&n, 4, n.qpn << 8 | 4, 4);
    node_be(&n, 48, 8, 4);
    node_be(&n, 52, n.lkey, 4);
    node_be(&n, 56, (uint64_t)n.buf, 8);
    n.pi = 4;
    assert_int_equal(node_ring(&n), 0);
    cqe_is(node_poll(&n), 13, 0x12, 3);
    pair_close(&n, &p);
}

/* ---- mistakes: each gets its syndrome, then the rest is flushed ---- */

struct mistake {
    const char     *what;
    uint8_t         syndrome;
    struct node_cfg cfg;
    void            (*make)(struct node *n, struct post *p);
    uint8_t         responder; /* syndrome of the peer's own error CQE, 0: none */
    bool            recv;
};

static void bad_rkey_tag(struct node *n, struct post *p)
{
    p->rkey = n->peer.rkey ^ 1;
}

static void bad_rkey_index(struct node *n, struct post *p)
{
    p->rkey = n->peer.rkey ^ 0x4000;
}

static void past_the_end(struct node *n, struct post *p)
{
    p->addr       = n->peer.buf + NODE_BUF - 4;
    p->seg[0].len = 5;
}

static void before_start(struct node *n, struct post *p)
{
    p->addr = n->peer.buf - 1;
}

static void wraps(struct node *n, struct post *p)
{
    (void)n;
    p->addr = ~0ull - 2;
}

static void bad_lkey(struct node *n, struct post *p)
{
    p->seg[0].lkey = n->lkey ^ 1;
}

static void local_past_the_end(struct node *n, struct post *p)
{
    p->seg[0].addr = (uint64_t)n->buf + NODE_BUF - 3;
}

static void local_no_right(struct node *n, struct post *p)
{
    uint32_t index;

    node_key(n, n->buf, NODE_BUF, 7, "lr", &index);
    p->opcode      = 0x10;
    p->seg[0].lkey = index << 8 | 7;
}

static void too_long(struct node *n, struct post *p)
{
    (void)n;
    p->seg[0].len = 0; /* 2 GiB */
}

static void no_opcode(struct node *n, struct post *p)
{
    (void)n;
    p->opcode = 0x0c;
}

static void opmod_set(struct node *n, struct post *p)
{
    (void)n;
    p->opmod = 1;
}

static void ds_too_big(struct node *n, struct post *p)
{
    (void)n;
    p->ds_delta = 2; /* beyond what the doorbell announced */
}

static void wrong_index(struct node *n, struct post *p)
{
    (void)n;
    p->index_delta = 1;
}

static void wrong_qpn(struct node *n, struct post *p)
{
    (void)n;
    p->qpn_delta = 1;
}

static void reserved_ce(struct node *n, struct post *p)
{
    (void)n;
    p->fm_ce_se = 4;
}

static void reserved_fence(struct node *n, struct post *p)
{
    (void)n;
    p->fm_ce_se = 0xa8;
}

static void inline_read(struct node *n, struct post *p)
{
    (void)n;
    p->opcode  = 0x10;
    p->nseg    = 0;
    p->inl     = "12345678";
    p->inl_len = 8;
}

static void read_it(struct node *n, struct post *p)
{
    (void)n;
    p->opcode = 0x10;
}

static void unmapped_here(struct node *n, struct post *p)
{
    (void)p;
    munmap(n->buf, 4096);
}

static void send_too_long(struct node *n, struct post *p)
{
    *p = post_send(n, 0, 101);
}

static void send_it(struct node *n, struct post *p)
{
    *p = post_send(n, 0, 8);
}

static const struct mistake mistakes[] = {
    { "rkey tag", 0x13, { 0 }, bad_rkey_tag, 0, false },
    { "rkey index", 0x13, { 0 }, bad_rkey_index, 0, false },
    { "past the end", 0x13, { 0 }, past_the_end, 0, false },
    { "before the start", 0x13, { 0 }, before_start, 0, false },
    { "address that wraps", 0x13, { 0 }, wraps, 0, false },
    { "lkey tag", 0x04, { 0 }, bad_lkey, 0, false },
    { "local past the end", 0x04, { 0 }, local_past_the_end, 0, false },
    { "local write right", 0x04, { 0 }, local_no_right, 0, false },
    { "local memory unmapped", 0x04, { 0 }, unmapped_here, 0, false },
    { "2 GiB", 0x01, { 0 }, too_long, 0, false },
    { "opcode", 0x02, { 0 }, no_opcode, 0, false },
    { "opmod", 0x02, { 0 }, opmod_set, 0, false },
    { "ds", 0x02, { 0 }, ds_too_big, 0, false },
    { "wqe index", 0x02, { 0 }, wrong_index, 0, false },
    { "qpn", 0x02, { 0 }, wrong_qpn, 0, false },
    { "ce", 0x02, { 0 }, reserved_ce, 0, false },
    { "fence", 0x02, { 0 }, reserved_fence, 0, false },
    { "inline read", 0x02, { 0 }, inline_read, 0, false },
    { "write not enabled", 0x12, { .no_rwe = true }, NULL, 0, false },
    { "read not enabled", 0x12, { .no_rre = true }, read_it, 0, false },
    { "receive too short", 0x12, { 0 }, send_too_long, 0x01, true },
    { "no receive, no retry", 0x16, { .rnr_retry = 0 }, send_it, 0, false }
};

static void mistake__each_kind__its_syndrome_then_flush(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); ++i) {
        const struct mistake *m = &mistakes[i];
        struct post post, next;
        struct node_cfg cfg     = m->cfg;
        struct node n;
        struct peer p;
        uint16_t first, second;

        print_message("%s\n", m->what);
        cfg.retry_count = 1;
        cfg.ack_timeout = 14;
        pair_open(&n, &p, &cfg);
        if (m->recv) {
            peer_call(&p, PEER_RECV, 1, 100, 0);
        }
        post = post_rdma(&n, 0x08, 0, 0, 8);
        next = post_rdma(&n, 0x08, 0, 0, 8);
        if (m->make != NULL) {
            m->make(&n, &post);
        }
        post.fm_ce_se |= (post.fm_ce_se & 4) ? 0 : 8;
        first = node_write_wqe(&n, &post);
        if (post.ds_delta != 0) {
            node_ring(&n);
            cqe_is(node_poll(&n), 13, m->syndrome, first);
        } else {
            second = node_write_wqe(&n, &next);
            node_ring(&n);
            cqe_is(node_poll(&n), 13, m->syndrome, first);
            cqe_is(node_poll(&n), 13, 0x05, second);
        }
        assert_null(node_poll(&n));
        if (m->responder != 0) {
            cqe_is(peer_cqe(&p), 14, m->responder, 0);
        }

        /* what is posted from now on is flushed at once */
        first = node_post(&n, &next);
        cqe_is(node_poll(&n), 13, 0x05, first);
        pair_close(&n, &p);
    }
}

static int group_setup(void **state)
{
    const char *env = getenv("HIXL_TEST_SEED");

    seed = env ? strtoul(env, NULL, 0) : (unsigned)time(NULL);
    print_message("HIXL_TEST_SEED=%u\n", seed);
    return node_group_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rdma_write__odd_sizes_and_offsets__every_byte_arrives),
        cmocka_unit_test(rdma_write__inline_up_to_the_wqe_limit__arrives),
        cmocka_unit_test(rdma_write__inline_before_pointers__join_in_order),
        cmocka_unit_test(rdma__scattered_pieces__join_in_order),
        cmocka_unit_test(rdma_read__whole_buffer__every_byte_arrives),
        cmocka_unit_test(send__list_and_ring__wqe_and_bytes_match),
        cmocka_unit_test(write_imm__takes_a_receive__data_is_where_it_says),
        cmocka_unit_test(unsignaled__only_the_asked_one_completes__in_order),
        cmocka_unit_test(atomics__cs_fa_and_masked__as_the_prm_says),
        cmocka_unit_test(mistake__each_kind__its_syndrome_then_flush)
    };

    return cmocka_run_group_tests(tests, group_setup, node_group_teardown);
}
