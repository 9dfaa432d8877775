/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue memory: contents kept when pages are exchanged and restored, pages that
 * several queues share, fork children, and what was unmapped too early. */

#include "vhca_node.h"

static bool is_shared(void *page)
{
    char line[512];
    unsigned long from, to;
    char perm[8];
    bool res = false;
    FILE *maps = fopen("/proc/self/maps", "r");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if ((sscanf(line, "%lx-%lx %7s", &from, &to, perm) == 3) &&
            ((unsigned long)page >= from) && ((unsigned long)page < to)) {
            res = perm[3] == 's';
        }
    }
    fclose(maps);
    return res;
}

static void exchange__contents__kept_both_ways(void **state)
{
    uint8_t *p = node_pages(3 * 4096);
    struct nic_mem mem;
    unsigned i;

    (void)state;
    for (i = 0; i < 3 * 4096; ++i) {
        p[i] = i * 7;
    }
    assert_int_equal(vhca_fabric_attach(), 0);
    assert_true(nic_mem_map(p + 64, 2 * 4096, &mem));
    assert_true(is_shared(p));
    for (i = 0; i < 3 * 4096; ++i) {
        assert_int_equal(p[i], (uint8_t)(i * 7));
    }
    /* the same bytes through the fabric */
    p[64 + 5000] = 0x99;
    assert_int_equal(*(uint8_t*)nic_mem_at(&mem, 5000), 0x99);
    *(uint8_t*)nic_mem_at(&mem, 8191) = 0x98;
    assert_int_equal(p[64 + 8191], 0x98);
    nic_mem_unmap(&mem);
    assert_false(is_shared(p));
    assert_int_equal(p[64 + 5000], 0x99);
    assert_int_equal(p[64 + 8191], 0x98);
    assert_int_equal(p[0], 0);
    munmap(p, 3 * 4096);
}

static void exchange__shared_page__restored_with_the_last(void **state)
{
    uint8_t *p = node_pages(4096);
    struct nic_mem a, b;

    (void)state;
    assert_true(nic_mem_map(p + 8, 8, &a));
    assert_true(nic_mem_map(p + 128, 8, &b));
    p[8]   = 1;
    p[128] = 2;
    assert_int_equal(*(uint8_t*)nic_mem_at(&a, 0), 1);
    assert_int_equal(*(uint8_t*)nic_mem_at(&b, 0), 2);
    nic_mem_unmap(&a);
    assert_true(is_shared(p));
    p[128] = 3;
    assert_int_equal(*(uint8_t*)nic_mem_at(&b, 0), 3);
    nic_mem_unmap(&b);
    assert_false(is_shared(p));
    assert_int_equal(p[128], 3);
    munmap(p, 4096);
}

/* The middle page is exchanged first, so the run of pages is broken. */
static void exchange__pages_of_two_runs__one_range(void **state)
{
    uint8_t *p = node_pages(5 * 4096);
    struct nic_mem mid, all;
    uint32_t off;

    (void)state;
    assert_true(nic_mem_map(p + 2 * 4096, 64, &mid));
    assert_true(nic_mem_map(p, 5 * 4096, &all));
    assert_int_not_equal(all.table, 0);
    for (off = 0; off < 5 * 4096; off += 64) {
        *(uint32_t*)nic_mem_at(&all, off) = off ^ 0x5a5a;
    }
    for (off = 0; off < 5 * 4096; off += 64) {
        assert_int_equal(*(uint32_t*)(void*)(p + off), off ^ 0x5a5a);
    }
    nic_mem_unmap(&all);
    assert_true(is_shared(p + 2 * 4096));
    assert_false(is_shared(p));
    assert_false(is_shared(p + 4 * 4096));
    nic_mem_unmap(&mid);
    assert_false(is_shared(p + 2 * 4096));
    for (off = 0; off < 5 * 4096; off += 64) {
        assert_int_equal(*(uint32_t*)(void*)(p + off), off ^ 0x5a5a);
    }
    munmap(p, 5 * 4096);
}

static void exchange__unmapped_address__refused_without_trace(void **state)
{
    uint8_t *p = node_pages(3 * 4096);
    struct nic_mem mem;

    (void)state;
    munmap(p + 4096, 4096);
    assert_false(nic_mem_map(p, 3 * 4096, &mem));
    assert_false(is_shared(p));
    assert_false(is_shared(p + 2 * 4096));
    munmap(p, 3 * 4096);
}

static void restore__mapping_replaced_by_program__left_alone(void **state)
{
    uint8_t *p = node_pages(2 * 4096);
    struct nic_mem mem;

    (void)state;
    assert_true(nic_mem_map(p, 2 * 4096, &mem));
    memset(p, 1, 2 * 4096);
    assert_true(mmap(p, 2 * 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
    memset(p, 2, 2 * 4096);
    nic_mem_unmap(&mem);
    assert_int_equal(p[0], 2);
    assert_int_equal(p[8191], 2);

    /* and unmapped: nothing appears there */
    assert_true(nic_mem_map(p, 2 * 4096, &mem));
    munmap(p, 2 * 4096);
    nic_mem_unmap(&mem);
    assert_int_equal(msync(p, 4096, MS_ASYNC), -1);
}

static void exchange__again_and_again__pool_does_not_grow(void **state)
{
    uint8_t *p = node_pages(16 * 4096);
    uint32_t high = 0, i;
    struct nic_mem mem;

    (void)state;
    for (i = 0; i < 3000; ++i) {
        assert_true(nic_mem_map(p, (1 + i % 16) * 4096, &mem));
        nic_mem_unmap(&mem);
        if (i == 1500) {
            high = atomic_load(&NIC_FAB->hdr.pool_high);
        }
    }
    assert_true(atomic_load(&NIC_FAB->hdr.pool_high) <= high + 16);
    munmap(p, 16 * 4096);
}

/* A fork child has its own copy of the queues, destroys nothing, and can enter
 * the fabric for itself. */
static void fork_child__owns_nothing__parent_undisturbed(void **state)
{
    struct node_cfg cfg = { 0 };
    struct post post;
    struct node n;
    int status;
    pid_t pid;

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    node_connect(&n, 0x504);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct node mine;
        uint8_t *sq = n.sq;

        memset(sq, 0xff, 64); /* a private copy */
        n.db[0] = 0xffffffff;
        if ((vhca_doorbell(VHCA_DOORBELL_SQ, n.qpn) != -ENODEV) ||
            is_shared(n.sq)) {
            _exit(1);
        }
        vhca_owner_close(n.owner);
        vhca_channel_destroy(1);
        vhca_event_unsubscribe(n.qpn);
        node_open(&mine, &cfg);
        vhca_owner_close(n.owner); /* attached, but not its owner */
        if (vhca_doorbell(VHCA_DOORBELL_SQ, n.qpn) != -ENOENT) {
            _exit(2);
        }
        node_close(&mine);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    post = post_rdma(&n, 0x08, 0, 4096, 64);
    node_post(&n, &post);
    cqe_is(node_poll(&n), 0, 0, 0);
    node_close(&n);
}

static void map_again__part_of_the_pool__same_bytes(void **state)
{
    uint8_t *p = node_pages(2 * 4096);
    struct nic_mem mem;

    (void)state;
    assert_int_equal(vhca_fabric_attach(), 0);
    assert_true(nic_mem_map(p, 4096, &mem));
    p[4096] = 0x11;
    assert_true(nic_fabric_map_again(NIC_FAB->pool[mem.first], 4096,
                                     (uintptr_t)p + 4096));
    assert_int_equal(p[4096], 0);
    p[4097] = 0x97;
    assert_int_equal(p[1], 0x97);
    nic_mem_unmap(&mem);
    munmap(p, 2 * 4096);
}

static void map_again__another_file__refused(void **state)
{
    uint8_t *p = node_pages(4096);
    char path[300], aside[310];
    FILE *file;

    (void)state;
    assert_int_equal(vhca_fabric_attach(), 0);
    snprintf(path, sizeof(path), "%s/fabric", nic_self.dir);
    snprintf(aside, sizeof(aside), "%s.aside", path);
    p[0] = 0x96;

    assert_int_equal(rename(path, aside), 0);
    assert_false(nic_fabric_map_again(NIC_FAB->pool[0], 4096, (uintptr_t)p));
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_false(nic_fabric_map_again(NIC_FAB->pool[0], 4096, (uintptr_t)p));
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(p[0], 0x96);
    munmap(p, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange__contents__kept_both_ways),
        cmocka_unit_test(exchange__shared_page__restored_with_the_last),
        cmocka_unit_test(exchange__pages_of_two_runs__one_range),
        cmocka_unit_test(exchange__unmapped_address__refused_without_trace),
        cmocka_unit_test(restore__mapping_replaced_by_program__left_alone),
        cmocka_unit_test(exchange__again_and_again__pool_does_not_grow),
        cmocka_unit_test(map_again__part_of_the_pool__same_bytes),
        cmocka_unit_test(map_again__another_file__refused),
        cmocka_unit_test(fork_child__owns_nothing__parent_undisturbed)
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
