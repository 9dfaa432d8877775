/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The transport by the UCT API: every data operation at the borders of what
 * the interface says that it takes, every byte checked, over both ways to
 * connect.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/uct.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A zero-copy operation may be larger; this crosses all its borders. */
#define LEN_MAX    (2ul << 20)
#define PIECES_MAX 64
#define GAP        64ul
#define GUARD      0xa5
#define MEM_LEN    (256ul << 20)
#define AM_ID      7

enum kind {
    PUT_SHORT, PUT_BCOPY, PUT_ZCOPY, GET_BCOPY, GET_ZCOPY,
    AM_SHORT, AM_SHORT_IOV, AM_BCOPY, AM_ZCOPY, KINDS
};

static const char *const kind_names[KINDS] = {
    "put_short", "put_bcopy", "put_zcopy", "get_bcopy", "get_zcopy",
    "am_short", "am_short_iov", "am_bcopy", "am_zcopy"
};

static const uint64_t kind_flags[KINDS] = {
    UCT_IFACE_FLAG_PUT_SHORT, UCT_IFACE_FLAG_PUT_BCOPY,
    UCT_IFACE_FLAG_PUT_ZCOPY, UCT_IFACE_FLAG_GET_BCOPY,
    UCT_IFACE_FLAG_GET_ZCOPY, UCT_IFACE_FLAG_AM_SHORT, UCT_IFACE_FLAG_AM_SHORT,
    UCT_IFACE_FLAG_AM_BCOPY, UCT_IFACE_FLAG_AM_ZCOPY
};

/* One operation of the plan, which both processes make alike */
struct op {
    enum kind kind;
    size_t    len;
    size_t    hdr_len;   /* am_zcopy */
    unsigned  num_iov;
    size_t    remote;    /* offset in the peer's memory */
    size_t    local;     /* offset in the initiator's; pieces lie GAP apart */
};

struct plan {
    struct op *ops;
    unsigned   count;
    unsigned   size;
    size_t     remote_end, local_end;
};

struct run {
    struct hxt_uct     u;
    struct hxt_uct_mem local;
    struct plan        plan;
    unsigned           am_next;   /* the operation whose message comes next */
};

static struct run run;

/* ---- the plan ---- */

struct limits {
    size_t   min, max, max_hdr;
    unsigned max_iov;
};

static struct limits limits_of(enum kind kind)
{
    const uct_iface_attr_t *a = &run.u.attr;

    switch (kind) {
    case PUT_SHORT:
        return (struct limits){ 0, a->cap.put.max_short, 0, 1 };
    case PUT_BCOPY:
        return (struct limits){ 0, a->cap.put.max_bcopy, 0, 1 };
    case PUT_ZCOPY:
        return (struct limits){ a->cap.put.min_zcopy, a->cap.put.max_zcopy, 0,
                                a->cap.put.max_iov };
    case GET_BCOPY:
        return (struct limits){ 0, a->cap.get.max_bcopy, 0, 1 };
    case GET_ZCOPY:
        return (struct limits){ a->cap.get.min_zcopy, a->cap.get.max_zcopy, 0,
                                a->cap.get.max_iov };
    /* the first eight bytes of a message say which it is */
    case AM_SHORT:
        return (struct limits){ 8, a->cap.am.max_short, 0, 1 };
    case AM_SHORT_IOV:
        return (struct limits){ 8, a->cap.am.max_short, 0,
                                a->cap.am.max_iov };
    case AM_BCOPY:
        return (struct limits){ 8, a->cap.am.max_bcopy, 0, 1 };
    case AM_ZCOPY:
        return (struct limits){ 8, a->cap.am.max_zcopy, a->cap.am.max_hdr,
                                a->cap.am.max_iov };
    default:
        abort();
    }
}

static void add_op(struct plan *plan, struct op op)
{
    if (plan->count == plan->size) {
        plan->size = plan->size * 2 + 64;
        plan->ops  = realloc(plan->ops, plan->size * sizeof(*plan->ops));
        HXT_CHECK(plan->ops != NULL, "no memory");
    }
    op.remote         = plan->remote_end;
    op.local          = plan->local_end;
    plan->remote_end += op.len + GAP + 1; /* never aligned alike */
    plan->local_end  += op.len + (op.num_iov + 1) * GAP + 3;
    HXT_CHECK(plan->remote_end <= MEM_LEN && plan->local_end <= MEM_LEN,
              "the plan needs more memory");
    plan->ops[plan->count++] = op;
}

/* A size with every number of pieces, when that is little work. */
static void plan_size(struct plan *plan, enum kind kind, size_t len,
                      const struct limits *limits)
{
    unsigned max_iov = limits->max_iov < PIECES_MAX ? limits->max_iov :
                                                      PIECES_MAX;
    unsigned num_iov, step = len <= 65536 ? 1 : max_iov > 1 ? max_iov - 1 : 1;
    struct op op = { .kind = kind, .len = len };

    for (num_iov = 1; num_iov <= max_iov; num_iov += step) {
        op.num_iov = num_iov;
        if (kind == AM_ZCOPY) {
            op.hdr_len = 8;
            add_op(plan, op);
            op.hdr_len = len < limits->max_hdr ? len : limits->max_hdr;
        }
        add_op(plan, op);
    }
}

static void make_plan(struct plan *plan, enum kind kind)
{
    const struct limits limits = limits_of(kind);
    size_t max = limits.max < LEN_MAX ? limits.max : LEN_MAX, len;
    const uct_iface_attr_t *a  = &run.u.attr;
    const size_t borders[] = {
        0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 27, 28, 29, 63, 64, 65, 127, 128,
        a->cap.put.max_short, a->cap.am.max_short, 4096, a->cap.put.max_bcopy,
        a->cap.am.max_bcopy, a->cap.get.max_bcopy, 65536, 1000003, max
    };
    unsigned i, j, k;
    size_t tried[3 * sizeof(borders) / sizeof(borders[0])];
    unsigned num_tried = 0;
    bool seen;

    for (i = 0; i < sizeof(borders) / sizeof(borders[0]); i++) {
        for (j = 0; j < 3; j++) {
            len  = borders[i] + j - 1; /* around each; 0 - 1 is too much */
            seen = len < limits.min || len > max;
            for (k = 0; k < num_tried && !seen; k++) {
                seen = tried[k] == len;
            }
            if (!seen) {
                tried[num_tried++] = len;
                plan_size(plan, kind, len, &limits);
            }
        }
    }
}

static uint64_t key_of(unsigned index)
{
    return hxt_rng_derive(run.u.proc->seed, index, 3, 3).state;
}

/* Cuts the operation's bytes into its pieces, some of them empty. */
static void make_iov(const struct op *op, unsigned index, size_t len,
                     uct_iov_t *iov)
{
    struct hxt_rng rng = hxt_rng_derive(run.u.proc->seed, index, 4, 4);
    uint8_t *pos       = run.local.addr + op->local;
    unsigned i;

    for (i = 0; i < op->num_iov; i++) {
        iov[i] = (uct_iov_t){
            .buffer = pos,
            .length = i + 1 == op->num_iov ? len : hxt_rng_range(&rng, 0, len),
            .memh   = run.local.memh,
            .stride = 0,
            .count  = 1
        };
        len -= iov[i].length;
        pos += iov[i].length + GAP;
    }
}

static void fill_iov(const struct op *op, const uct_iov_t *iov, uint64_t key,
                     uint64_t pos)
{
    unsigned i;

    for (i = 0; i < op->num_iov; i++) {
        hxt_fill(iov[i].buffer, iov[i].length, key, pos);
        pos += iov[i].length;
    }
}

/* ---- messages: a word {index, length}, then the pattern ---- */

static uint64_t am_word(unsigned index)
{
    return (uint64_t)run.plan.ops[index].len << 32 | index;
}

static void am_bytes(uint8_t *buf, unsigned index, size_t len)
{
    uint64_t word = am_word(index);

    memcpy(buf, &word, 8);
    hxt_fill(buf + 8, len - 8, key_of(index), 0);
}

static ucs_status_t am_handler(void *arg, void *data, size_t length,
                               unsigned flags)
{
    unsigned index = run.am_next++;
    const uint8_t *bytes = data;
    uint64_t word;

    (void)arg;
    (void)flags;
    HXT_CHECK(index < run.plan.count, "a message too many");
    HXT_CHECK(length >= 8, "a message of %zu bytes", length);
    memcpy(&word, bytes, 8);
    HXT_CHECK(word == am_word(index) && length == run.plan.ops[index].len,
              "message {%u, %zu} of %zu bytes where {%u, %zu} comes next",
              (uint32_t)word, (size_t)(word >> 32), length, index,
              run.plan.ops[index].len);
    hxt_verify(kind_names[run.plan.ops[index].kind], bytes + 8, length - 8,
               key_of(index), 0);
    return UCS_OK;
}

/* ---- operations ---- */

struct arg {
    const struct op *op;
    unsigned         index;
    unsigned         unpacked;
};

static size_t pack_put(void *dest, void *arg)
{
    const struct arg *a = arg;

    hxt_fill(dest, a->op->len, key_of(a->index), 0);
    return a->op->len;
}

static size_t pack_am(void *dest, void *arg)
{
    const struct arg *a = arg;

    am_bytes(dest, a->index, a->op->len);
    return a->op->len;
}

static void unpack_get(void *arg, const void *data, size_t length)
{
    struct arg *a = arg;

    HXT_CHECK(length == a->op->len, "get_bcopy unpacks %zu bytes of %zu",
              length, a->op->len);
    memcpy(run.local.addr + a->op->local, data, length);
    a->unpacked++;
}

static ucs_status_t packed(ssize_t ret, const struct op *op)
{
    if (ret < 0) {
        return (ucs_status_t)ret;
    }
    HXT_CHECK((size_t)ret == op->len, "%s says %zd bytes of %zu",
              kind_names[op->kind], ret, op->len);
    return UCS_OK;
}

static ucs_status_t post_am_short_iov(const struct op *op, unsigned index)
{
    uint8_t *staged = run.local.addr + op->local;
    uct_iov_t iov[PIECES_MAX];
    size_t len = op->len, part;
    unsigned i;

    am_bytes(staged, index, len);
    for (i = 0; i < op->num_iov; i++) {
        part   = i + 1 == op->num_iov ? len : len / 2;
        iov[i] = (uct_iov_t){ .buffer = staged, .length = part, .count = 1 };
        staged += part;
        len    -= part;
    }
    return uct_ep_am_short_iov(run.u.ep, AM_ID, iov, op->num_iov);
}

static ucs_status_t post_am_zcopy(const struct op *op, unsigned index,
                                  uct_completion_t *comp)
{
    uint8_t hdr[65536];
    uct_iov_t iov[PIECES_MAX];

    HXT_CHECK(op->hdr_len <= sizeof(hdr), "max_hdr of %zu", op->hdr_len);
    am_bytes(hdr, index, op->hdr_len);
    make_iov(op, index, op->len - op->hdr_len, iov);
    fill_iov(op, iov, key_of(index), op->hdr_len - 8);
    return uct_ep_am_zcopy(run.u.ep, AM_ID, hdr, op->hdr_len, iov,
                           op->num_iov, 0, comp);
}

static ucs_status_t post(const struct op *op, struct arg *arg,
                         uct_completion_t *comp)
{
    uint64_t remote = run.u.peer_addr + op->remote;
    uct_rkey_t rkey = run.u.peer_rkey.rkey;
    uint8_t *staged = run.local.addr + op->local;
    unsigned index  = arg->index;
    uct_iov_t iov[PIECES_MAX];

    switch (op->kind) {
    case PUT_SHORT:
        hxt_fill(staged, op->len, key_of(index), 0);
        return uct_ep_put_short(run.u.ep, staged, op->len, remote, rkey);
    case PUT_BCOPY:
        return packed(uct_ep_put_bcopy(run.u.ep, pack_put, arg, remote, rkey),
                      op);
    case PUT_ZCOPY:
        make_iov(op, index, op->len, iov);
        fill_iov(op, iov, key_of(index), 0);
        return uct_ep_put_zcopy(run.u.ep, iov, op->num_iov, remote, rkey,
                                comp);
    case GET_BCOPY:
        return uct_ep_get_bcopy(run.u.ep, unpack_get, arg, op->len, remote,
                                rkey, comp);
    case GET_ZCOPY:
        make_iov(op, index, op->len, iov);
        return uct_ep_get_zcopy(run.u.ep, iov, op->num_iov, remote, rkey,
                                comp);
    case AM_SHORT:
        am_bytes(staged, index, op->len);
        return uct_ep_am_short(run.u.ep, AM_ID, am_word(index), staged + 8,
                               op->len - 8);
    case AM_SHORT_IOV:
        return post_am_short_iov(op, index);
    case AM_BCOPY:
        return packed(uct_ep_am_bcopy(run.u.ep, AM_ID, pack_am, arg, 0), op);
    case AM_ZCOPY:
        return post_am_zcopy(op, index, comp);
    default:
        abort();
    }
}

/* The bytes of a get, and nothing between or behind its pieces */
static void check_get(const struct op *op, unsigned index)
{
    uint8_t *base = run.local.addr + op->local;
    uint64_t key  = run.u.proc->seed;
    uct_iov_t iov[PIECES_MAX];
    size_t pos = op->remote;
    unsigned i;

    make_iov(op, index, op->len, iov);
    for (i = 0; i < op->num_iov; i++) {
        base = iov[i].buffer;
        hxt_verify(kind_names[op->kind], base, iov[i].length, key, pos);
        HXT_CHECK(hxt_not_all(base + iov[i].length, GAP, GUARD) < 0,
                  "%s of %zu bytes wrote behind a piece",
                  kind_names[op->kind], op->len);
        pos += iov[i].length;
    }
}

static void do_op(unsigned index)
{
    const struct op *op = &run.plan.ops[index];
    struct arg arg      = { .op = op, .index = index };
    struct hxt_uct_comp comp;
    ucs_status_t status;

    do {
        hxt_uct_comp_init(&comp);
        status = post(op, &arg, &comp.super);
        if (status == UCS_ERR_NO_RESOURCE) {
            hxt_uct_progress(&run.u);
        }
    } while (status == UCS_ERR_NO_RESOURCE);
    hxt_uct_comp_wait(&run.u, &comp, status, kind_names[op->kind]);
    if (op->kind == GET_BCOPY || op->kind == GET_ZCOPY) {
        /* with nothing to unpack it is free not to call */
        HXT_CHECK(op->kind != GET_BCOPY || arg.unpacked == 1 || op->len == 0,
                  "get_bcopy of %zu bytes unpacked %u times", op->len,
                  arg.unpacked);
        check_get(op, index);
    }
}

/* ---- both sides ---- */

static void initiate(void)
{
    unsigned i;

    memset(run.local.addr, GUARD, run.plan.local_end + GAP);
    hxt_barrier(run.u.proc);
    for (i = 0; i < run.plan.count; i++) {
        do_op(i);
    }
    hxt_uct_flush(&run.u);
    hxt_barrier(run.u.proc);
}

static void check_puts(void)
{
    const struct op *op;
    unsigned i;

    for (i = 0; i < run.plan.count; i++) {
        op = &run.plan.ops[i];
        hxt_verify(kind_names[op->kind], run.u.mem.addr + op->remote, op->len,
                   key_of(i), 0);
        HXT_CHECK(hxt_not_all(run.u.mem.addr + op->remote + op->len, GAP,
                              GUARD) < 0,
                  "%s of %zu bytes wrote behind its range",
                  kind_names[op->kind], op->len);
    }
}

static void respond(enum kind kind)
{
    if (kind == GET_BCOPY || kind == GET_ZCOPY) {
        hxt_fill(run.u.mem.addr, run.plan.remote_end, run.u.proc->seed, 0);
    } else {
        memset(run.u.mem.addr, GUARD, run.plan.remote_end + GAP);
    }
    run.am_next = 0;
    hxt_barrier(run.u.proc);
    hxt_barrier(run.u.proc);
    if (kind <= PUT_ZCOPY) {
        check_puts();
    } else if (kind >= AM_SHORT) {
        while (run.am_next < run.plan.count) {
            hxt_uct_progress(&run.u);
        }
    }
}

static void run_ops(struct hxt_proc *proc, bool to_ep)
{
    unsigned turn, kind;

    hxt_uct_open(&run.u, proc, MEM_LEN, to_ep);
    hxt_uct_mem_reg(&run.u, MEM_LEN, &run.local);
    HXT_CHECK(uct_iface_set_am_handler(run.u.iface, AM_ID, am_handler, NULL,
                                       0) == UCS_OK, "am handler");
    hxt_barrier(proc);
    for (kind = 0; kind < KINDS; kind++) {
        if (!(run.u.attr.cap.flags & kind_flags[kind])) {
            HXT_CHECK(hxt_foreign(), "no %s", kind_names[kind]);
            continue;
        }
        memset(&run.plan, 0, sizeof(run.plan));
        make_plan(&run.plan, kind);
        for (turn = 0; turn < 2; turn++) {
            if (turn == proc->rank) {
                initiate();
            } else {
                respond(kind);
            }
            hxt_barrier(proc);
        }
        if (proc->rank == 0) {
            printf("%s: %u operations each way\n", kind_names[kind],
                   run.plan.count);
        }
        free(run.plan.ops);
    }
    hxt_uct_mem_dereg(&run.u, &run.local);
    hxt_uct_close(&run.u);
}

static void run_to_iface(struct hxt_proc *proc)
{
    run_ops(proc, false);
}

static void run_to_ep(struct hxt_proc *proc)
{
    run_ops(proc, true);
}

static void expect_all(const char *scenario)
{
    static const struct hxt_expect expect[] = {
        { "wqe.rdma_write", HXT_AT_LEAST, 2 * 100 },
        { "wqe_inline.rdma_write", HXT_AT_LEAST, 2 * 20 },
        { "wqe.rdma_read", HXT_AT_LEAST, 2 * 100 },
        { "wqe.send", HXT_AT_LEAST, 2 * 100 },
        { "wqe_inline.send", HXT_AT_LEAST, 2 * 20 },
        { "sw.hixl.bounce_put_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_get_bytes", HXT_IS, 0 },
        { "sw.hixl.bounce_am_bytes", HXT_IS, 0 },
        { "objects.qp", HXT_IS, 0 }
    };

    hxt_run(&(struct hxt_run){ .scenario = scenario, .count = 2 });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

static void every_operation__connect_to_iface__every_byte_arrives(void **state)
{
    (void)state;
    expect_all("to_iface");
}

static void every_operation__connect_to_ep__every_byte_arrives(void **state)
{
    (void)state;
    expect_all("to_ep");
}

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "to_iface", run_to_iface },
        { "to_ep", run_to_ep },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
                every_operation__connect_to_iface__every_byte_arrives,
                hxt_setup, hxt_teardown),
        cmocka_unit_test_setup_teardown(
                every_operation__connect_to_ep__every_byte_arrives,
                hxt_setup, hxt_teardown)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
