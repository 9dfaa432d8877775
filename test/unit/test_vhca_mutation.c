/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every bit of every kind of WQE counts: with one bit flipped the device
 * refuses it, or what it did differs from what the WQE itself does, in memory,
 * in completions or in the state of a QP. Bits that may be anything are listed
 * with the reason. (Mailboxes: test_devx_decode.c.)
 */

#define NODE_BUF (32u << 10) /* small: it is compared some thousand times */
#include "vhca_node.h"

enum { DST = 0x1000, SRC = 0x2000, RECV = 0x4000, MAX_CQES = 4 };

/* One WQE at the start of a queue, and what it came to */
struct scene {
    struct node a, b;      /* requester, responder */
    size_t      len;       /* bytes of the WQE */
    uint8_t    *wqe;       /* where it is flipped */
};

struct completion {
    uint8_t  opcode, syndrome, solicited;
    uint16_t counter;
    uint32_t byte_cnt, imm, uidx;
};

struct outcome {
    unsigned           num[2];
    struct completion  cqe[2][MAX_CQES];
    enum vhca_qp_state state[2];
    uint8_t            mem[2][NODE_BUF];
};

struct golden {
    const char *name;
    void        (*write)(struct scene *s);
    bool        receive;   /* the WQE under test is b's receive */
    bool        fails;     /* it is one that gives an error */
};

static const struct node_cfg cfg = {
    .retry_count = 1, .ack_timeout = 14, .rnr_retry = 7, .min_rnr_nak = 12
};

/* ---- WQEs ---- */

static void put_ctrl(struct scene *s, uint32_t opmod_opcode, uint8_t ds)
{
    node_be(&s->a, 0, opmod_opcode, 4); /* opmod, index 0, opcode */
    node_be(&s->a, 4, s->a.qpn << 8 | ds, 4);
    node_be(&s->a, 8, 0x08, 4);         /* ask for a completion */
    node_be(&s->a, 12, 0x11223344, 4);
    s->len = ds * 16u;
}

static void put_raddr(struct scene *s)
{
    node_be(&s->a, 16, s->a.peer.buf + DST, 8);
    node_be(&s->a, 24, s->a.peer.rkey, 4);
    node_be(&s->a, 28, 0, 4);
}

static void put_data(struct scene *s, size_t at, uint32_t len)
{
    node_be(&s->a, at, len, 4);
    node_be(&s->a, at + 4, s->a.lkey, 4);
    node_be(&s->a, at + 8, (uint64_t)s->a.buf + SRC, 8);
}

static void write_nop(struct scene *s)
{
    put_ctrl(s, 0x00, 1);
}

static void write_rdma_write(struct scene *s)
{
    put_ctrl(s, 0x08, 3);
    put_raddr(s);
    put_data(s, 32, 40);
}

static void write_rdma_write_imm(struct scene *s)
{
    write_rdma_write(s);
    put_ctrl(s, 0x09, 3);
}

static void write_rdma_write_two_pieces(struct scene *s)
{
    put_ctrl(s, 0x08, 4);
    put_raddr(s);
    put_data(s, 32, 40);
    put_data(s, 48, 24);
}

static void write_rdma_write_inline(struct scene *s)
{
    size_t i;

    put_ctrl(s, 0x08, 5);
    put_raddr(s);
    node_be(&s->a, 32, 0x80000000u | 37, 4);
    for (i = 0; i < 44; ++i) {
        node_be(&s->a, 36 + i, 0xc0 + i, 1);
    }
}

static void write_rdma_read(struct scene *s)
{
    put_ctrl(s, 0x10, 3);
    put_raddr(s);
    put_data(s, 32, 40);
}

static void write_send(struct scene *s)
{
    put_ctrl(s, 0x0a, 2);
    put_data(s, 16, 40);
}

static void write_send_imm(struct scene *s)
{
    put_ctrl(s, 0x0b, 2);
    put_data(s, 16, 40);
}

static void write_send_inline(struct scene *s)
{
    put_ctrl(s, 0x0a, 2);
    node_be(&s->a, 16, 0x80000000u | 12, 4);
    node_be(&s->a, 20, 0xc0c1c2c3c4c5c6c7, 8);
    node_be(&s->a, 28, 0xc8c9cacb, 4);
}

static uint64_t *target(struct scene *s)
{
    return (uint64_t*)(void*)(s->b.buf + DST);
}

static void write_compare_swap(struct scene *s)
{
    put_ctrl(s, 0x11, 4);
    put_raddr(s);
    node_be(&s->a, 32, 0x0123456789abcdef, 8); /* swap */
    node_be(&s->a, 40, *target(s), 8);         /* compare: equal */
    put_data(s, 48, 8);
}

static void write_fetch_add(struct scene *s)
{
    put_ctrl(s, 0x12, 4);
    put_raddr(s);
    node_be(&s->a, 32, 0x0123456789abcdef, 8);
    node_be(&s->a, 40, 0, 8);
    put_data(s, 48, 8);
}

/* 8 bytes; the whole compared, and found equal */
static void write_masked_cs_compared(struct scene *s)
{
    put_ctrl(s, 0x09000014, 5);
    put_raddr(s);
    node_be(&s->a, 32, ~*target(s), 8);        /* swap: every bit changes */
    node_be(&s->a, 40, *target(s), 8);         /* compare */
    node_be(&s->a, 48, 0x00ff00ff00ff00ff, 8); /* swap mask */
    node_be(&s->a, 56, ~0ull, 8);              /* compare mask */
    put_data(s, 64, 8);
}

/* nothing is compared; a bit more, and it is found unequal */
static void write_masked_cs_swapped(struct scene *s)
{
    write_masked_cs_compared(s);
    node_be(&s->a, 40, ~*target(s), 8);
    node_be(&s->a, 48, ~0ull, 8);
    node_be(&s->a, 56, 0, 8);
}

/* A carry runs through all bits: an edge stops it. */
static void write_masked_fa(struct scene *s)
{
    *target(s) = ~0ull;
    put_ctrl(s, 0x09000015, 4);
    put_raddr(s);
    node_be(&s->a, 32, 1, 8);
    node_be(&s->a, 40, 0, 8);
    put_data(s, 48, 8);
}

/* 4 bytes: swap, compare and their masks in one segment */
static void write_masked_cs_small(struct scene *s)
{
    uint32_t old;

    memcpy(&old, target(s), sizeof(old));
    put_ctrl(s, 0x08000014, 4);
    put_raddr(s);
    node_be(&s->a, 32, ~old, 4);
    node_be(&s->a, 36, old, 4);
    node_be(&s->a, 40, ~0u, 4);
    node_be(&s->a, 44, ~0u, 4);
    put_data(s, 48, 4);
}

static void write_masked_fa_small(struct scene *s)
{
    *target(s) = ~0ull;
    put_ctrl(s, 0x08000015, 4);
    put_raddr(s);
    node_be(&s->a, 32, 1ull << 32, 8);         /* add, edges */
    node_be(&s->a, 40, 0, 8);
    put_data(s, 48, 4);
}

/* Two receives, so that the second shows where the first one led. */
static void write_receive(struct scene *s)
{
    write_send(s);
    s->wqe = s->b.rq;
    s->len = 32;
}

/* The list ends after its first piece, and the message is longer. */
static void write_receive_end(struct scene *s)
{
    write_send(s);
    put_data(s, 16, 400);
    s->wqe = s->b.rq + 32;
    s->len = 16;
}

static const struct golden goldens[] = {
    {"NOP", write_nop, false, false},
    {"RDMA_WRITE", write_rdma_write, false, false},
    {"RDMA_WRITE_IMM", write_rdma_write_imm, false, false},
    {"RDMA_WRITE, two pieces", write_rdma_write_two_pieces, false, false},
    {"RDMA_WRITE, inline", write_rdma_write_inline, false, false},
    {"RDMA_READ", write_rdma_read, false, false},
    {"SEND", write_send, false, false},
    {"SEND_IMM", write_send_imm, false, false},
    {"SEND, inline", write_send_inline, false, false},
    {"ATOMIC_CS", write_compare_swap, false, false},
    {"ATOMIC_FA", write_fetch_add, false, false},
    {"MASKED_CS, compared", write_masked_cs_compared, false, false},
    {"MASKED_CS, swapped", write_masked_cs_swapped, false, false},
    {"MASKED_CS, 4 bytes", write_masked_cs_small, false, false},
    {"MASKED_FA, 8 bytes", write_masked_fa, false, false},
    {"MASKED_FA, 4 bytes", write_masked_fa_small, false, false},
    {"receive, piece", write_receive, true, false},
    {"receive, end of list", write_receive_end, true, true},
};

/* ---- bits that may be anything ---- */

static const struct exception {
    const char *name;      /* prefix of the golden's name; "" is any send */
    unsigned    first, last; /* bytes of the WQE */
    uint8_t     mask;
    const char *why;
} exceptions[] = {
    {"", 8, 8, 0xff, "the signature counts on QPs that ask for it"},
    {"", 9, 10, 0xff, "the stream id is a DCI's"},
    {"", 11, 11, 0xe0, "fences: every request waits for those before it"},
    {"NOP", 11, 11, 0x02, "nobody is solicited"},
    {"RDMA_WRITE", 11, 11, 0x02, "without immediate nobody is solicited"},
    {"RDMA_READ", 11, 11, 0x02, "nobody is solicited"},
    {"ATOMIC", 11, 11, 0x02, "nobody is solicited"},
    {"MASKED", 11, 11, 0x02, "nobody is solicited"},
    {"NOP", 12, 15, 0xff, "no immediate"},
    {"RDMA_WRITE", 12, 15, 0xff, "no immediate"},
    {"RDMA_READ", 12, 15, 0xff, "no immediate"},
    {"SEND", 12, 15, 0xff, "no immediate"},
    {"ATOMIC", 12, 15, 0xff, "no immediate"},
    {"MASKED", 12, 15, 0xff, "no immediate"},
    {"RDMA_", 28, 31, 0xff, "UCX does not clear it"},
    {"ATOMIC", 28, 31, 0xff, "UCX does not clear it"},
    {"MASKED", 28, 31, 0xff, "UCX does not clear it"},
    {"RDMA_WRITE, inline", 73, 79, 0xff, "behind 37 bytes, to a multiple"},
    {"ATOMIC_FA", 40, 47, 0xff, "one operand"},
    {"MASKED_CS, compared", 56, 63, 0xff, "what is not compared was equal"},
    {"MASKED_CS, compared", 32, 32, 0xff, "not swapped"},
    {"MASKED_CS, compared", 34, 34, 0xff, "not swapped"},
    {"MASKED_CS, compared", 36, 36, 0xff, "not swapped"},
    {"MASKED_CS, compared", 38, 38, 0xff, "not swapped"},
    {"MASKED_CS, swapped", 40, 47, 0xff, "not compared"},
    {"MASKED_CS, 4 bytes", 44, 47, 0xff, "what is not compared was equal"},
    {"MASKED_FA, 4 bytes", 40, 47, 0xff, "two operands of 4 bytes"},
    {"MASKED_FA, 4 bytes", 36, 36, 0x80,
     "a carry out of the highest bit is lost"},
    {"MASKED_FA, 8 bytes", 40, 40, 0x80,
     "a carry out of the highest bit is lost"},
    {"NOP", 7, 7, 0x02, "segments behind a NOP's first are not looked at"},
    {"receive, piece", 0, 1, 0xff, "software's own (UCX)"},
    {"receive, piece", 2, 2, 0xff, "the index is taken modulo the ring"},
    {"receive, piece", 3, 3, 0xf0, "the index is taken modulo the ring"},
    {"receive, piece", 4, 15, 0xff, "software's own (UCX)"},
    {"receive, piece", 16, 16, 0x80, "a length has 31 bits"},
    {"receive, end", 0, 3, 0xff, "the key alone ends a list"},
    {"receive, end", 8, 15, 0xff, "the key alone ends a list"},
};

static unsigned used[sizeof(exceptions) / sizeof(exceptions[0])];

static bool excepted(const struct golden *g, unsigned bit)
{
    uint8_t mask = 0x80 >> (bit % 8);
    bool found   = false;
    unsigned i;

    for (i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); ++i) {
        const struct exception *e = &exceptions[i];

        if ((bit / 8 >= e->first) && (bit / 8 <= e->last) &&
            (e->mask & mask) && ((e->name[0] != '\0') || !g->receive) &&
            (strncmp(e->name, g->name, strlen(e->name)) == 0)) {
            ++used[i];
            found = true;
        }
    }

    return found;
}

/* ---- one run ---- */

static void pattern(struct node *n, uint8_t salt)
{
    unsigned i;

    for (i = 0; i < NODE_BUF; ++i) {
        n->buf[i] = (uint8_t)(i * 7 + i / 251 + salt);
    }
}

static void scene_open(struct scene *s, const struct golden *g)
{
    node_open(&s->a, &cfg);
    node_open(&s->b, &cfg);
    s->a.peer = node_info(&s->b);
    s->b.peer = node_info(&s->a);
    node_connect(&s->b, 0x504);
    node_connect(&s->a, 0x504);
    pattern(&s->a, 1);
    pattern(&s->b, 101);
    /* the last bytes of the key: a longer piece is not in it */
    node_recv(&s->b, s->b.buf + NODE_BUF - 256, 256);
    node_recv(&s->b, s->b.buf + RECV, 256);
    s->wqe = s->a.sq;
    g->write(s);
}

/* A queue in error may be flushed by another thread: then what must come is
 * waited for. */
static void collect(struct node *n, unsigned which, unsigned at_least,
                    struct outcome *o)
{
    const struct cqe64_err *err;
    const struct cqe64 *cqe;
    struct vhca_qp_info info;
    struct completion *c;
    struct vhca_fw fw;

    while (o->num[which] < MAX_CQES) {
        cqe = (o->num[which] < at_least) ? node_wait(n) : node_poll(n);
        if (cqe == NULL) {
            break;
        }
        c            = &o->cqe[which][o->num[which]++];
        err          = (const void*)cqe;
        c->opcode    = cqe->op_own >> 4;
        c->solicited = cqe->op_own & 2;
        c->counter   = be16toh(cqe->wqe_counter);
        c->uidx      = be32toh(cqe->srqn_uidx);
        if ((c->opcode == CQE_REQ_ERR) || (c->opcode == CQE_RESP_ERR)) {
            c->syndrome = err->syndrome;
        } else {
            c->byte_cnt = be32toh(cqe->byte_cnt);
            c->imm      = be32toh(cqe->imm_inval_pkey);
        }
    }

    assert_true(vhca_qp_query(n->owner, n->qpn, &info, &fw));
    o->state[which] = info.state;
    memcpy(o->mem[which], n->buf, NODE_BUF);
}

/* Executes the WQE with one bit flipped, or none (bit < 0). For a receive a
 * second message follows. */
static void run(const struct golden *g, int bit, struct outcome *before,
                struct outcome *after)
{
    static struct scene s;

    memset(before, 0, sizeof(*before));
    memset(after, 0, sizeof(*after));
    scene_open(&s, g);
    collect(&s.a, 0, 0, before);
    collect(&s.b, 1, 0, before);
    if (bit >= 0) {
        s.wqe[bit / 8] ^= (uint8_t)(0x80 >> (bit % 8));
    }

    assert_int_equal(node_recv_ring(&s.b), 0);
    s.a.pi = (uint16_t)(s.a.pi + (s.wqe == s.a.sq ? (s.len + 63) / 64 : 1));
    assert_int_equal(node_ring(&s.a), 0);
    if (g->receive) {
        struct post second = post_send(&s.a, SRC, 8);

        node_post(&s.a, &second);
    }
    collect(&s.a, 0, g->receive ? 2 : 0, after);
    collect(&s.b, 1, 0, after);
    node_close(&s.a);
    node_close(&s.b);
}

static bool refused(const struct outcome *o)
{
    return (o->state[0] == VHCA_QP_ERR) || (o->state[1] == VHCA_QP_ERR);
}

static void wqe__every_bit_of_every_kind__is_noticed(void **state)
{
    static struct outcome before, wanted, got;
    unsigned i, num_refused, num_differed, total = 0;
    const struct golden *g;
    struct scene s;
    size_t len;
    int bit;

    (void)state;
    for (i = 0; i < sizeof(goldens) / sizeof(goldens[0]); ++i) {
        g            = &goldens[i];
        num_refused  = 0;
        num_differed = 0;
        scene_open(&s, g);
        len = s.len;
        node_close(&s.a);
        node_close(&s.b);

        run(g, -1, &before, &wanted);
        assert_int_equal(refused(&wanted), g->fails);
        assert_int_equal(wanted.num[0], g->receive ? 2 : 1);
        for (bit = 0; bit < (int)len * 8; ++bit) {
            run(g, bit, &before, &got);
            if (memcmp(&got, &wanted, sizeof(got)) == 0) {
                if (!excepted(g, (unsigned)bit)) {
                    fail_msg("%s: byte %d, bit 0x%02x makes no difference",
                             g->name, bit / 8, 0x80 >> (bit % 8));
                }
                continue;
            }
            if (refused(&got)) {
                ++num_refused;
                /* a request that is refused has done nothing */
                assert_true(g->receive ||
                            (memcmp(got.mem, before.mem,
                                    sizeof(got.mem)) == 0));
            } else {
                ++num_differed;
            }
        }

        print_message("%-24s %4d bits: %4u refused, %4u do something else\n",
                      g->name, (int)len * 8, num_refused, num_differed);
        assert_true(num_refused > 0);
        total += (unsigned)len * 8;
    }

    assert_true(total > 5000);
    for (i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); ++i) {
        if (used[i] == 0) {
            fail_msg("exception %s, bytes %u..%u (%s) is not needed",
                     exceptions[i].name, exceptions[i].first,
                     exceptions[i].last, exceptions[i].why);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wqe__every_bit_of_every_kind__is_noticed),
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
