/* SPDX-License-Identifier: BSD-3-Clause */

/* vhca-stat: what it prints of what was done, also after everybody left. */

#include "vhca_node.h"

/* Runs vhca-stat; its output and exit status */
static int stat_run(const char *args, char *out, size_t size)
{
    const char *build = getenv("HIXL_BUILD");
    char command[600];
    size_t len = 0, got;
    int status;
    FILE *pipe;

    snprintf(command, sizeof(command), "%s/vhca-stat %s 2>&1",
             build ? build : ".", args);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    while ((got = fread(out + len, 1, size - 1 - len, pipe)) > 0) {
        len += got;
    }
    out[len] = '\0';
    status   = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static long long stat_get(const char *name)
{
    char out[4096];

    assert_int_equal(stat_run(name, out, sizeof(out)), 0);
    return strtoll(out, NULL, 10);
}

static void no_fabric__says_so(void **state)
{
    char out[4096];

    (void)state;
    setenv("VHCA_FABRIC", "nowhere", 1);
    assert_int_equal(stat_run("", out, sizeof(out)), 1);
    assert_non_null(strstr(out, "no fabric at"));
    unsetenv("VHCA_FABRIC");
}

static void counters__traffic__counted_by_kind(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7 };
    struct post post;
    struct node n;
    char out[16384];

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    node_connect(&n, 0x504);
    assert_int_equal(stat_run("--reset", out, sizeof(out)), 0);
    assert_int_equal(stat_get("wqe.rdma_write"), 0);

    post = post_rdma(&n, 0x08, 0, 4096, 100);
    node_post(&n, &post);
    post.nseg    = 0;
    post.inl     = "12345";
    post.inl_len = 5;
    node_post(&n, &post);
    post = post_rdma(&n, 0x10, 0, 4096, 1000);
    node_post(&n, &post);
    node_recv(&n, n.buf + 4096, 64);
    node_recv_ring(&n);
    post = post_send(&n, 0, 30);
    node_post(&n, &post);
    post = post_rdma(&n, 0x08, 0, 4096, 100);
    post.rkey ^= 1;
    node_post(&n, &post);

    assert_int_equal(stat_get("wqe.rdma_write"), 2);
    assert_int_equal(stat_get("wqe_inline.rdma_write"), 1);
    assert_int_equal(stat_get("bytes.rdma_write"), 105);
    assert_int_equal(stat_get("wqe.rdma_read"), 1);
    assert_int_equal(stat_get("bytes.rdma_read"), 1000);
    assert_int_equal(stat_get("wqe.send"), 1);
    assert_int_equal(stat_get("bytes.send"), 30);
    assert_int_equal(stat_get("cqe.req"), 5);
    assert_int_equal(stat_get("cqe.resp"), 1);
    assert_int_equal(stat_get("cqe.error"), 1);
    assert_int_equal(stat_get("cqe.syndrome.0x13"), 1);
    assert_int_equal(stat_get("cqe.syndrome.0x15"), 0);
    assert_int_equal(stat_get("doorbell.sq"), 5);
    assert_int_equal(stat_get("objects.qp"), 1);
    assert_int_equal(stat_get("mkey_remote"), 1);
    assert_int_equal(stat_get("mkey_local"), 1);
    node_close(&n);
    assert_int_equal(stat_get("objects.qp"), 0);
    assert_int_equal(stat_get("max.qp"), 1);
    assert_int_equal(stat_get("objects.mkey"), 0);
    assert_int_equal(stat_get("wqe.rdma_write"), 2);
}

static void names__given__only_their_values(void **state)
{
    uint64_t *cell = vhca_counter("test.cell");
    char out[4096];

    (void)state;
    assert_non_null(cell);
    assert_ptr_equal(cell, vhca_counter("test.cell"));
    __atomic_fetch_add(cell, 3, __ATOMIC_RELAXED);
    vhca_stat_add("cmd.CREATE_QP", 2);
    assert_int_equal(stat_run("sw.test.cell cmd.CREATE_QP cmd.NEVER_SEEN",
                              out, sizeof(out)), 0);
    assert_string_equal(out, "3\n2\n0\n");
    assert_int_equal(stat_run("no.such", out, sizeof(out)), 1);
    assert_non_null(strstr(out, "no value is named no.such"));
    assert_int_equal(stat_run("--json", out, sizeof(out)), 0);
    assert_non_null(strstr(out, "\"sw.test.cell\": 3"));
    assert_null(vhca_counter("bad name"));
}

static void high_water__one_process__kept_apart_from_the_sum(void **state)
{
    struct node_cfg cfg = { 0 };
    uint32_t index[5];
    struct vhca_fw fw;
    struct node n;
    struct peer p;
    char out[4096];
    int i;

    (void)state;
    stat_run("--reset", out, sizeof(out));
    pair_open(&n, &p, &cfg);
    for (i = 0; i < 5; ++i) {
        node_key(&n, n.buf, 64, i, "lr lw rw", &index[i]);
    }
    assert_int_equal(stat_get("mkey_remote"), 7);
    assert_int_equal(stat_get("max.mkey_remote"), 7);
    assert_int_equal(stat_get("max.mkey_remote_per_process"), 6);
    for (i = 0; i < 5; ++i) {
        assert_true(vhca_mkey_destroy(n.owner, index[i], &fw));
    }
    assert_int_equal(stat_get("mkey_remote"), 2);
    assert_int_equal(stat_get("max.mkey_remote_per_process"), 6);
    assert_int_equal(stat_run("--procs", out, sizeof(out)), 0);
    assert_non_null(strstr(out, "mkey_remote 1"));

    /* killed: what it had is not there any more, what it did is */
    peer_kill(&p);
    assert_int_equal(stat_get("mkey_remote"), 1);
    assert_int_equal(stat_get("objects.proc"), 1);
    node_close(&n);
}

static void other_layout__refused_by_name(void **state)
{
    char path[600], out[4096];
    uint64_t junk = 0;
    int fd, status;
    pid_t pid;

    (void)state;
    setenv("VHCA_FABRIC", "old", 1);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(vhca_fabric_attach() != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    snprintf(path, sizeof(path), "%s/vhca.%u/old/fabric", node_dir,
             (unsigned)getuid());
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &junk, 4, 12), 4);
    close(fd);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(vhca_fabric_attach() == -EPROTO ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(stat_run("", out, sizeof(out)), 1);
    unsetenv("VHCA_FABRIC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_fabric__says_so),
        cmocka_unit_test(counters__traffic__counted_by_kind),
        cmocka_unit_test(names__given__only_their_values),
        cmocka_unit_test(high_water__one_process__kept_apart_from_the_sum),
        cmocka_unit_test(other_layout__refused_by_name)
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
