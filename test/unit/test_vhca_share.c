/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys over memory that a peer can map: the bytes, that the kernel copies none
 * of them where it need not, and that what the owner does to its addresses,
 * files and descriptors afterwards neither changes the bytes nor ends anybody.
 */

#include <dirent.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "vhca_node.h"

#define LEN      (96u * 4096)
#define MANY     (NIC_VIEW_SETS * NIC_VIEW_WAYS + 200)
#define ACCESS   0x13u              /* CQE syndromes */
#define PROT     0x04u

static const struct node_cfg quick = {
    .retry_count = 1, .ack_timeout = 14, .rnr_retry = 7, .min_rnr_nak = 12
};

static unsigned seed;

enum kind {
    SEALED,                         /* a memfd that cannot shrink */
    PIECES,                         /* the same in four mappings */
    ANON,                           /* MAP_SHARED without a file */
    UNSEALED, FILED, COPY, SHUFFLED, PRIVATE,
    KINDS
};

static const struct {
    const char *name;
    bool        here;               /* a peer is to map it */
} kinds[KINDS] = {
    [SEALED]   = { "sealed memfd", true },
    [PIECES]   = { "sealed memfd in pieces", true },
    [ANON]     = { "anonymous shared", true },
    [UNSEALED] = { "memfd without seal", false },
    [FILED]    = { "file on tmpfs", false },
    [COPY]     = { "private mapping of a sealed memfd", false },
    [SHUFFLED] = { "pieces of a sealed memfd in disorder", false },
    [PRIVATE]  = { "private memory", false }
};

/* ---- memory of each kind ---- */

struct mem {
    uint8_t *at;
    int      fd;                    /* -1: none, or closed */
};

static uint8_t *map_at(uint8_t *at, size_t len, int flags, int fd, off_t off)
{
    uint8_t *got = mmap(at, len, PROT_READ | PROT_WRITE,
                        flags | (at ? MAP_FIXED : 0), fd, off);

    assert_true(got != MAP_FAILED);
    return got;
}

static int mem_file(enum kind kind)
{
    char path[64];
    int fd;

    if (kind == FILED) {
        snprintf(path, sizeof(path), "/dev/shm/vhca-share-test.%d", getpid());
        fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        unlink(path);
    } else {
        fd = memfd_create("share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4 * LEN), 0);
    if ((kind != UNSEALED) && (kind != FILED)) {
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    }
    return fd;
}

static struct mem mem_make(enum kind kind)
{
    struct mem mem = { .fd = -1 };
    unsigned i;

    if ((kind == ANON) || (kind == PRIVATE)) {
        mem.at = map_at(NULL, LEN, MAP_ANONYMOUS | (kind == ANON ? MAP_SHARED :
                                                    MAP_PRIVATE), -1, 0);
        return mem;
    }

    mem.fd = mem_file(kind);
    mem.at = map_at(NULL, LEN, kind == COPY ? MAP_PRIVATE : MAP_SHARED, mem.fd,
                    LEN);
    for (i = 0; (i < 4) && ((kind == PIECES) || (kind == SHUFFLED)); ++i) {
        map_at(mem.at + i * (LEN / 4), LEN / 4, MAP_SHARED, mem.fd,
               LEN + (kind == PIECES ? i : 3 - i) * (LEN / 4));
    }
    if (kind == PIECES) {
        /* other rights make other mappings of what would be one */
        assert_int_equal(mprotect(mem.at + LEN / 4, LEN / 4,
                                  PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    }
    return mem;
}

static void mem_drop(struct mem *mem)
{
    munmap(mem->at, LEN);
    if (mem->fd >= 0) {
        close(mem->fd);
    }
}

static uint32_t key_over(struct node *n, void *at, size_t len, uint8_t tag)
{
    uint32_t index;

    node_key(n, at, len, tag, "lr lw rr rw at", &index);
    return index << 8 | tag;
}

static void key_drop(struct node *n, uint32_t key)
{
    struct vhca_fw fw;

    assert_true(vhca_mkey_destroy(n->owner, key >> 8, &fw));
}

/* ---- the other process ---- */

enum order {
    NOTHING, CONNECT, MAKE, MAKE_MANY, KEY_DROP, UNMAP, REMAP, TRUNCATE,
    CLOSE_ALL, REKEY, QUIT
};

struct far_page {
    struct node_info info, other;
    _Atomic uint32_t ready, order;
    uint32_t         kind;
    uint64_t         addr;
    uint32_t         rkey, many[MANY];
    uint32_t         fds;           /* open, after the order */
    uint32_t         stands;        /* a descriptor that is none of vhca's */
    uint8_t          bytes[LEN];
};

struct far {
    struct far_page *page;
    pid_t            pid;
};

static unsigned count_fds(void)
{
    DIR *dir   = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        ++n;
    }
    closedir(dir);
    return n - 3;
}

static void far_do(struct node *n, struct far_page *page, struct mem *mem)
{
    unsigned i;
    int fd;

    switch (atomic_load(&page->order)) {
    case CONNECT:
        n->peer = page->other;
        node_connect(n, 0x504);
        break;
    case MAKE:
        *mem = mem_make(page->kind);
        memcpy(mem->at, page->bytes, LEN);
        page->addr = (uint64_t)mem->at;
        page->rkey = key_over(n, mem->at + 3, LEN - 5, 0x21);
        break;
    case MAKE_MANY: /* one key a byte */
        *mem = mem_make(SEALED);
        page->addr = (uint64_t)mem->at;
        for (i = 0; i < MANY; ++i) {
            page->many[i] = key_over(n, mem->at + i * 64, 64, i);
        }
        break;
    case KEY_DROP:
        key_drop(n, page->rkey);
        mem_drop(mem);
        break;
    case UNMAP:
        munmap(mem->at, LEN);
        break;
    case REMAP:
        map_at(mem->at, LEN, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(mem->at, 0x77, LEN);
        break;
    case TRUNCATE:
        assert_int_equal(ftruncate(mem->fd, 0), 0);
        break;
    case CLOSE_ALL: /* and something else gets the numbers */
        for (fd = 3; fd < 200; ++fd) {
            if (fd != mem->fd) {
                close(fd);
            }
        }
        for (fd = 3; fd < 100; ++fd) {
            open("/dev/null", O_RDONLY);
        }
        break;
    case REKEY: {
        struct vhca_mkey_attr attr = {
            .owner = n->owner, .pdn = n->pdn, .len = LEN, .qpn = 0xffffff,
            .tag = 0x21, .rr = true, .rw = true
        };
        struct vhca_fw fw;

        munmap(mem->at, LEN);
        close(mem->fd);
        *mem       = mem_make(page->kind);
        attr.start = page->addr = (uint64_t)mem->at;
        assert_true(vhca_mkey_modify(page->rkey >> 8, &attr, &fw));
        break;
    }
    default:
        break;
    }
}

static void far_main(struct far_page *page, void (*before)(void))
{
    struct mem mem = { .fd = -1 };
    uint32_t order;
    struct node n;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (before != NULL) {
        before();
    }
    node_open(&n, &quick);
    page->info = node_info(&n);
    page->fds  = count_fds();
    atomic_store(&page->ready, 1);
    for (;;) {
        while ((order = atomic_load(&page->order)) == NOTHING) {
            sched_yield();
        }
        if (order == QUIT) {
            node_close(&n);
            _exit(0);
        }
        far_do(&n, page, &mem);
        page->fds = count_fds();
        atomic_store(&page->order, NOTHING);
    }
}

static void far_tell(struct far *f, uint32_t order)
{
    atomic_store(&f->page->order, order);
    wait_for(&f->page->order, NOTHING);
}

static void far_open(struct far *f, struct node *n, void (*before)(void))
{
    node_child_ends(2);
    f->page = mmap(NULL, sizeof(*f->page), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(f->page != MAP_FAILED);
    fflush(NULL);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0) {
        far_main(f->page, before);
    }
    wait_for(&f->page->ready, 1);
    node_open(n, &quick);
    n->peer        = f->page->info;
    f->page->other = node_info(n);
    far_tell(f, CONNECT);
    node_connect(n, 0x504);
}

static void far_end(struct far *f, bool killed)
{
    int status;

    if (killed) {
        kill(f->pid, SIGKILL);
    } else {
        atomic_store(&f->page->order, QUIT);
    }
    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    assert_int_equal(status, killed ? SIGKILL : 0);
    munmap(f->page, sizeof(*f->page));
}

/* ---- one request, and what it cost ---- */

static uint64_t calls(void)
{
    return atomic_load(&nic_self.proc->stat[NIC_STAT_COPY_CALLS]);
}

static int64_t cell(const char *name)
{
    unsigned i;

    for (i = 0; i < NIC_CELLS; ++i) {
        struct nic_cell *c = &NIC_FAB->hdr.cell[i];

        if ((atomic_load(&c->state) == 2) && (strcmp(c->name, name) == 0)) {
            return c->value;
        }
    }
    return 0;
}

static struct post rdma(struct far *f, uint8_t opcode, uint32_t roff,
                        void *local, uint32_t lkey, uint32_t len)
{
    return (struct post) {
        .opcode = opcode, .fm_ce_se = 8, .raddr = true,
        .addr = f->page->addr + roff, .rkey = f->page->rkey, .nseg = 1,
        .seg = { { (uint64_t)local, len, lkey } }
    };
}

static void run(struct node *n, const struct post *p, uint8_t syndrome)
{
    uint16_t index = node_post(n, p);

    cqe_is(node_wait(n), syndrome ? 13 : 0, syndrome, index);
}

static void fill(uint8_t *at, size_t len)
{
    size_t i;

    for (i = 0; i < len; ++i) {
        at[i] = rand_r(&seed);
    }
}

/* Reads what far has, all of it but the ends that no key covers */
static void far_has(struct node *n, struct far *f, const uint8_t *shadow)
{
    struct post p = rdma(f, 0x10, 3, n->buf, n->lkey, LEN - 5);

    memset(n->buf, 0xa5, LEN);
    run(n, &p, 0);
    assert_memory_equal(n->buf, shadow + 3, LEN - 5);
}

/* ---- tests ---- */

/* Writes and reads of every size at any offset, also over the borders of far's
 * mappings, from and to pieces of shared and of private memory */
static void transfers(struct node *n, struct far *f, uint8_t *shadow,
                      const struct mem *ours, uint32_t lkey, bool mixed)
{
    uint32_t turn, i;

    for (turn = 0; turn < 150; ++turn) {
        bool read     = rand_r(&seed) & 1;
        uint32_t roff = 3 + rand_r(&seed) % (LEN - 5 - 40000), at = roff;
        struct post p = rdma(f, read ? 0x10 : 0x08, roff, NULL, 0, 0);

        p.nseg = 1 + rand_r(&seed) % 4;
        for (i = 0; i < p.nseg; ++i) {
            uint32_t len = 1 + rand_r(&seed) % ((turn & 1) ? 9999 : 30);
            bool private = mixed && (rand_r(&seed) & 1);
            /* a quarter of either memory for each piece */
            uint32_t off = i * (LEN / 4) + rand_r(&seed) % 10000;
            uint8_t *pos = (private ? n->buf : ours->at) + off;

            p.seg[i].addr = (uint64_t)pos;
            p.seg[i].len  = len;
            p.seg[i].lkey = private ? n->lkey : lkey;
            if (!read) {
                fill(pos, len);
                memcpy(shadow + at, pos, len);
            } else {
                memset(pos, 0x3c, len);
            }
            at += len;
        }
        run(n, &p, 0);
        for (i = 0, at = roff; i < p.nseg; at += p.seg[i++].len) {
            assert_memory_equal((void*)p.seg[i].addr, shadow + at,
                                p.seg[i].len);
        }
    }
}

static void rdma__every_kind_of_memory__bytes_arrive(void **state)
{
    uint8_t *shadow = malloc(LEN);
    unsigned kind;

    (void)state;
    for (kind = 0; kind < KINDS; ++kind) {
        struct mem ours = mem_make(SEALED);
        struct node n;
        struct far f;
        uint64_t before;
        uint32_t lkey;

        far_open(&f, &n, NULL);
        fill(shadow, LEN);
        memcpy(f.page->bytes, shadow, LEN);
        f.page->kind = kind;
        far_tell(&f, MAKE);
        lkey   = key_over(&n, ours.at, LEN, 0x44);
        before = calls();
        transfers(&n, &f, shadow, &ours, lkey, false);
        if ((calls() == before) != kinds[kind].here) {
            fail_msg("%s: the kernel copied %d times", kinds[kind].name,
                     (int)(calls() - before));
        }
        transfers(&n, &f, shadow, &ours, lkey, true);
        far_has(&n, &f, shadow);
        key_drop(&n, lkey);
        mem_drop(&ours);
        node_close(&n);
        far_end(&f, false);
    }
    free(shadow);
}

static void rdma__inline_and_atomic_on_shared_memory__no_call(void **state)
{
    struct mem ours = mem_make(SEALED);
    uint8_t data[200], *shadow = calloc(1, LEN);
    uint64_t before;
    struct post p;
    struct node n;
    struct far f;
    uint32_t lkey;

    (void)state;
    far_open(&f, &n, NULL);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    lkey   = key_over(&n, ours.at, LEN, 0x44);
    before = calls();
    fill(data, sizeof(data));
    p         = rdma(&f, 0x08, 4091, NULL, 0, 0);
    p.nseg    = 0;
    p.inl     = data;
    p.inl_len = sizeof(data);
    run(&n, &p, 0);
    memcpy(shadow + 4091, data, sizeof(data));

    p               = rdma(&f, 0x12, 8192, ours.at + 8, lkey, 8);
    p.inl           = NULL;
    p.seg[0].addr   = (uint64_t)ours.at + 8;
    /* the operands of an atomic stand where data segments would */
    p.nseg          = 2;
    p.seg[1]        = p.seg[0];
    p.seg[0].len    = 0;
    p.seg[0].lkey   = 5;
    p.seg[0].addr   = 0;
    run(&n, &p, 0);
    run(&n, &p, 0);
    assert_int_equal(*(uint64_t*)(void*)(ours.at + 8), 5);
    *(uint64_t*)(void*)(shadow + 8192) = 10;
    assert_int_equal(calls(), before);
    far_has(&n, &f, shadow);

    key_drop(&n, lkey);
    mem_drop(&ours);
    node_close(&n);
    far_end(&f, false);
    free(shadow);
}

/* A NIC keeps the pages: what the owner does to its addresses is its affair. */
static void rdma__owner_unmaps_and_remaps__the_pages_are_meant(void **state)
{
    struct mem ours = mem_make(SEALED);
    uint8_t *shadow = malloc(LEN);
    uint64_t before;
    struct post p;
    struct node n;
    struct far f;
    uint32_t lkey;

    (void)state;
    far_open(&f, &n, NULL);
    fill(shadow, LEN);
    memcpy(f.page->bytes, shadow, LEN);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    lkey   = key_over(&n, ours.at, LEN, 0x44);
    before = calls();
    far_tell(&f, UNMAP);
    far_has(&n, &f, shadow);
    far_tell(&f, REMAP);
    far_has(&n, &f, shadow);

    /* ours as well: after this its file has the bytes, not the address */
    fill(ours.at, LEN);
    memcpy(shadow + 3, ours.at, LEN - 5);
    p = rdma(&f, 0x08, 3, ours.at, lkey, 1);
    run(&n, &p, 0); /* a view that came later could lie where it was */
    munmap(ours.at, LEN);
    p = rdma(&f, 0x08, 3, ours.at, lkey, LEN - 5);
    run(&n, &p, 0);
    far_has(&n, &f, shadow);
    map_at(ours.at, LEN, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p = rdma(&f, 0x10, 3, ours.at + 100, lkey, LEN - 200);
    run(&n, &p, 0);
    assert_int_equal(ours.at[100], 0);
    assert_int_equal(pread(ours.fd, n.buf, LEN - 200, LEN + 100), LEN - 200);
    assert_memory_equal(n.buf, shadow + 3, LEN - 200);
    assert_in_range(calls() - before, 0, 3); /* those to private memory */

    key_drop(&n, lkey);
    mem_drop(&ours);
    node_close(&n);
    far_end(&f, false);
    free(shadow);
}

static void rdma__file_truncated__error_and_no_signal(void **state)
{
    static const enum kind which[] = { UNSEALED, FILED };
    unsigned i;

    (void)state;
    for (i = 0; i < 4; ++i) {
        bool local      = i & 1;
        struct mem ours = mem_make(local ? which[i / 2] : SEALED);
        struct node n;
        struct far f;
        struct post p;
        uint32_t lkey;

        far_open(&f, &n, NULL);
        f.page->kind = local ? SEALED : which[i / 2];
        far_tell(&f, MAKE);
        lkey = key_over(&n, ours.at, LEN, 0x44);
        p    = rdma(&f, 0x08, 3, ours.at, lkey, LEN - 5);
        run(&n, &p, 0); /* whatever is mapped now is */
        if (local) {
            assert_int_equal(ftruncate(ours.fd, 0), 0);
        } else {
            far_tell(&f, TRUNCATE);
        }
        run(&n, &p, local ? PROT : ACCESS);
        key_drop(&n, lkey);
        mem_drop(&ours);
        node_close(&n);
        far_end(&f, false);
    }
}

static void rdma__private_memory_unmapped__error_and_no_signal(void **state)
{
    struct mem ours = mem_make(PRIVATE);
    struct post p;
    struct node n;
    struct far f;
    uint32_t lkey;

    (void)state;
    far_open(&f, &n, NULL);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    lkey = key_over(&n, ours.at, LEN, 0x44);
    munmap(ours.at + LEN / 2, LEN / 2);
    p = rdma(&f, 0x08, 3, ours.at, lkey, LEN - 5);
    run(&n, &p, PROT);
    key_drop(&n, lkey);
    mem_drop(&ours);
    node_close(&n);
    far_end(&f, false);
}

static void key__destroyed_or_modified__views_and_descriptors_go(void **state)
{
    uint8_t *zero = calloc(1, LEN);
    int64_t keys;
    uint32_t fds;
    struct post p;
    struct node n;
    struct far f;
    uint64_t before;

    (void)state;
    far_open(&f, &n, NULL);
    keys = cell("share.key");
    fds  = f.page->fds;
    nic_share_trim(); /* of the tests before this one */
    assert_int_equal(cell("share.view"), 0);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    assert_int_equal(cell("share.key"), keys + 1);
    assert_int_equal(f.page->fds, fds + 2); /* the test's own, and the key's */
    far_has(&n, &f, zero);
    assert_int_equal(cell("share.view"), 1);

    /* the key goes on with other memory: the view is of that */
    memset(n.buf, 9, 100);
    p = rdma(&f, 0x08, 3, n.buf, n.lkey, 100);
    run(&n, &p, 0);
    far_tell(&f, REKEY);
    assert_int_equal(f.page->fds, fds + 2);
    before = calls();
    far_has(&n, &f, zero);
    assert_int_equal(calls(), before + 1); /* into private memory */
    assert_int_equal(cell("share.view"), 1);

    far_tell(&f, KEY_DROP);
    assert_int_equal(f.page->fds, fds);
    assert_int_equal(cell("share.key"), keys);
    assert_int_equal(node_recv_ring(&n), 0); /* any doorbell */
    assert_int_equal(cell("share.view"), 0);
    node_close(&n);
    far_end(&f, false);
    free(zero);
}

static void owner__killed__views_go(void **state)
{
    uint8_t *zero = calloc(1, LEN);
    struct node n;
    struct far f;

    (void)state;
    far_open(&f, &n, NULL);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    far_has(&n, &f, zero);
    assert_int_equal(cell("share.view"), 1);
    far_end(&f, true);
    nic_sweep_all();
    assert_int_equal(node_recv_ring(&n), 0);
    assert_int_equal(cell("share.view"), 0);
    node_close(&n);
    free(zero);
}

/* Two threads, each with more keys of its peer than there are views, so that
 * each takes away what the other may be using */
struct thread {
    pthread_t   id;
    struct node n;
    struct far  f;
    struct mem  ours;
    uint32_t    lkey;
    unsigned    seed, wrong;
    const char *how;
};

static void *thread_main(void *arg)
{
    struct thread *t = arg;
    unsigned turn;

    for (turn = 0; turn < 20000; ++turn) {
        unsigned i    = rand_r(&t->seed) % MANY, off = rand_r(&t->seed) % 32;
        uint8_t *out  = t->ours.at + 4096, *in = t->ours.at + 8192;
        struct post p = rdma(&t->f, 0x08, i * 64 + off, out, t->lkey, 32);
        const struct cqe64 *cqe;
        unsigned k;

        p.rkey = t->f.page->many[i];
        memcpy(out, &turn, sizeof(turn));
        for (k = 4; k < 32; ++k) {
            out[k] = i + k;
        }
        node_write_wqe(&t->n, &p);
        p.opcode      = 0x10;
        p.seg[0].addr = (uint64_t)in;
        memset(in, 0, 32);
        node_write_wqe(&t->n, &p);
        node_ring(&t->n);
        for (k = 0; k < 2; ++k) {
            cqe = node_poll(&t->n);
            if ((cqe == NULL) || (cqe->op_own >> 4 != 0)) {
                ++t->wrong;
            }
        }
        t->wrong += memcmp(in, out, 32) != 0;
    }
    return NULL;
}

static void views__more_keys_than_fit_in_two_threads__right_and_bounded(
        void **state)
{
    struct thread t[2];
    unsigned i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        t[i].seed  = seed + i;
        t[i].wrong = 0;
        t[i].ours  = mem_make(SEALED);
        far_open(&t[i].f, &t[i].n, NULL);
        far_tell(&t[i].f, MAKE_MANY);
        /* one file, one descriptor, however many keys */
        assert_in_range(t[i].f.page->fds, 0, 20);
        t[i].lkey = key_over(&t[i].n, t[i].ours.at, LEN, 0x44);
    }
    for (i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&t[i].id, NULL, thread_main, &t[i]),
                         0);
    }
    for (i = 0; i < 2; ++i) {
        pthread_join(t[i].id, NULL);
        assert_int_equal(t[i].wrong, 0);
    }
    assert_in_range(cell("share.view"), NIC_VIEW_SETS,
                    NIC_VIEW_SETS * NIC_VIEW_WAYS);
    for (i = 0; i < 2; ++i) {
        node_close(&t[i].n);
        mem_drop(&t[i].ours);
        far_end(&t[i].f, false);
    }
    nic_share_trim();
    assert_int_equal(cell("share.view"), 0);
}

/* Whoever may not open /proc/<pid>/map_files */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct hdr = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2];

    memset(none, 0, sizeof(none));
    assert_int_equal(syscall(SYS_capset, &hdr, none), 0);
}

/* A kernel before 6.11: the question is answered ENOTTY */
static void drop_query(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                 (uint32_t)_IOWR('f', 17, uint64_t[13]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void in_a_child(void (*before)(void), const enum kind *which,
                       const bool *here, unsigned n_kinds)
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unsigned i;

        /* the far ends are its own children */
        node_main = getpid();
        before();
        for (i = 0; i < n_kinds; ++i) {
            struct mem ours = mem_make(SEALED);
            uint8_t *shadow = calloc(1, LEN);
            uint64_t was;
            struct node n;
            struct far f;
            uint32_t lkey;

            far_open(&f, &n, before);
            f.page->kind = which[i];
            far_tell(&f, MAKE);
            lkey = key_over(&n, ours.at, LEN, 0x44);
            was  = calls();
            transfers(&n, &f, shadow, &ours, lkey, false);
            if ((calls() == was) != here[i]) {
                _exit(10 + i);
            }
            far_has(&n, &f, shadow);
            node_close(&n);
            far_end(&f, false);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void key__without_capabilities__found_by_descriptor(void **state)
{
    static const enum kind which[] = { SEALED, PIECES, ANON, UNSEALED };
    static const bool here[]       = { true, true, false, false };

    (void)state;
    in_a_child(drop_capabilities, which, here, 4);
}

static void key__kernel_without_map_query__found_in_the_text(void **state)
{
    static const enum kind which[] = { SEALED, PIECES, SHUFFLED, PRIVATE };
    static const bool here[]       = { true, true, false, false };

    (void)state;
    in_a_child(drop_query, which, here, 4);
}

static void owner__closes_every_descriptor__bytes_arrive(void **state)
{
    uint8_t *shadow = malloc(LEN);
    struct node n;
    struct far f;
    uint64_t before;
    uint32_t fds;

    (void)state;
    far_open(&f, &n, NULL);
    fill(shadow, LEN);
    memcpy(f.page->bytes, shadow, LEN);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    far_tell(&f, CLOSE_ALL);
    fds    = f.page->fds;
    before = calls();
    far_has(&n, &f, shadow);
    assert_int_equal(calls(), before + 1);
    /* the number is somebody else's by now: it stays open */
    far_tell(&f, KEY_DROP);
    assert_int_equal(f.page->fds, fds - 1); /* the test's own memfd */
    node_close(&n);
    far_end(&f, false);
    free(shadow);
}

static void fork__in_a_process_with_views__child_has_none(void **state)
{
    struct mem ours = mem_make(SEALED);
    uint8_t *zero   = calloc(1, LEN);
    unsigned fds    = 0, child_fds;
    int pipes[2], status;
    struct node n;
    struct far f;
    uint32_t lkey;
    pid_t pid;

    (void)state;
    far_open(&f, &n, NULL);
    f.page->kind = SEALED;
    far_tell(&f, MAKE);
    fds  = count_fds();
    lkey = key_over(&n, ours.at, LEN, 0x44);
    assert_int_equal(count_fds(), fds + 1);
    {
        struct post p = rdma(&f, 0x10, 3, ours.at, lkey, LEN - 5);

        run(&n, &p, 0);
    }
    assert_int_equal(cell("share.view"), 2);
    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        char line[512], perms[8];
        FILE *maps  = fopen("/proc/self/maps", "r");
        int shared  = 0;

        child_fds = count_fds() - 3; /* the pipe's, and maps */
        while (fgets(line, sizeof(line), maps) != NULL) {
            shared += (sscanf(line, "%*s %7s", perms) == 1) &&
                      (strstr(line, "memfd:share") != NULL);
        }
        _exit((child_fds == fds) && (shared == 1) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(pipes[0]);
    close(pipes[1]);

    /* and the parent's go on */
    far_has(&n, &f, zero);
    key_drop(&n, lkey);
    assert_int_equal(count_fds(), fds);
    mem_drop(&ours);
    node_close(&n);
    far_end(&f, false);
    free(zero);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rdma__every_kind_of_memory__bytes_arrive),
        cmocka_unit_test(rdma__inline_and_atomic_on_shared_memory__no_call),
        cmocka_unit_test(rdma__owner_unmaps_and_remaps__the_pages_are_meant),
        cmocka_unit_test(rdma__file_truncated__error_and_no_signal),
        cmocka_unit_test(rdma__private_memory_unmapped__error_and_no_signal),
        cmocka_unit_test(
                key__destroyed_or_modified__views_and_descriptors_go),
        cmocka_unit_test(owner__killed__views_go),
        cmocka_unit_test(
                views__more_keys_than_fit_in_two_threads__right_and_bounded),
        cmocka_unit_test(key__without_capabilities__found_by_descriptor),
        cmocka_unit_test(key__kernel_without_map_query__found_in_the_text),
        cmocka_unit_test(owner__closes_every_descriptor__bytes_arrive),
        cmocka_unit_test(fork__in_a_process_with_views__child_has_none)
    };

    seed = getenv("HIXL_TEST_SEED") ? atoi(getenv("HIXL_TEST_SEED")) :
                                      (int)time(NULL);
    print_message("seed %u\n", seed);
    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
