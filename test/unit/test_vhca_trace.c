/* SPDX-License-Identifier: BSD-3-Clause */

/* VHCA_TRACE: known commands and work queue elements, and the text they must
 * give, from several processes and threads at once. */

#include "vhca_node.h"

#include <regex.h>

#include "vhca/kernel.h"
#include "vhca/prm_table.h"
#include "vhca/trace.h"

#define THREADS 4
#define LINES   500

static char trace_path[300];

static int trace_group_setup(void **state)
{
    int ret = node_group_setup(state);

    snprintf(trace_path, sizeof(trace_path), "%s/trace", node_dir);
    setenv("VHCA_TRACE", trace_path, 1);
    return (ret != 0) ? ret : vhca_fabric_attach();
}

/* Forgets what was written so far; the file stays the same one. */
static int trace_begin(void **state)
{
    (void)state;
    return truncate(trace_path, 0);
}

static char *trace_text(void)
{
    FILE *file = fopen(trace_path, "r");
    char *text = NULL;
    size_t size = 0, len = 0;
    int c;

    assert_non_null(file);
    while ((c = fgetc(file)) != EOF) {
        if (len + 2 > size) {
            size = size * 2 + 4096;
            text = realloc(text, size);
            assert_non_null(text);
        }
        text[len++] = c;
    }
    fclose(file);
    if (text == NULL) {
        return strdup("");
    }
    text[len] = '\0';
    return text;
}

/* Each line begins with a time and this process; the rest is `expected`. */
static void trace_is(const char *expected)
{
    char head[100], *text = trace_text(), *rest = text, *line, *what;
    regex_t regex;
    regmatch_t at;

    snprintf(head, sizeof(head),
             "^[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6} %d/%d ",
             (int)getpid(), (int)getpid());
    assert_int_equal(regcomp(&regex, head, REG_EXTENDED), 0);
    what = calloc(1, strlen(text) + 1);
    assert_non_null(what);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line == '\0') {
            break;
        }
        if (regexec(&regex, line, 1, &at, 0) != 0) {
            fail_msg("no time and process: %s", line);
        }
        strcat(what, line + at.rm_eo);
        strcat(what, "\n");
    }
    assert_string_equal(what, expected);
    regfree(&regex);
    free(what);
    free(text);
}

/* ---- work queue elements ---- */

static void post_all_kinds(struct node *n)
{
    struct post post;

    post = post_rdma(n, 0x08, 0, 4096, 100);
    node_post(n, &post);

    node_recv(n, n->buf + 8192, 64);
    node_recv_ring(n);
    post          = post_send(n, 0, 0);
    post.opcode   = 0x0b;
    post.imm      = 0x12345678;
    post.fm_ce_se = 0x0a | 2 << 5;
    post.inl      = "hello";
    post.inl_len  = 5;
    post.nseg     = 0;
    node_post(n, &post);

    post        = post_rdma(n, 0x10, 0, 4096, 100);
    post.nseg   = 2;
    post.seg[1] = post.seg[0];
    node_post(n, &post);

    post      = post_rdma(n, 0x00, 0, 0, 0);
    post.nseg = 0;
    post.raddr = false;
    node_post(n, &post);

    post       = post_rdma(n, 0x08, 0, 4096, 1);
    post.rkey ^= 0xff;
    post.fm_ce_se = 0;
    node_post(n, &post);

    post = post_rdma(n, 0x08, 0, 4096, 1);
    node_post(n, &post);
}

static void wqes__each_kind__one_line(void **state)
{
    const struct node_cfg cfg = { .rnr_retry = 7 };
    unsigned long long buf;
    char expected[2000];
    struct node n;

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    node_connect(&n, 0x504);
    buf = (unsigned long long)(uintptr_t)n.buf;
    post_all_kinds(&n);
    snprintf(expected, sizeof(expected),
             "wqe qp=0x%x index=0 RDMA_WRITE ds=3 ce=2 raddr=0x%llx rkey=0x%x"
             " [0x%llx +100 lkey=0x%x] bytes=100\n"
             "wqe qp=0x%x index=1 SEND_IMM ds=2 ce=2 fm=2 se imm=0x12345678"
             " [inline 5] bytes=5\n"
             "wqe qp=0x%x index=2 RDMA_READ ds=4 ce=2 raddr=0x%llx rkey=0x%x"
             " [0x%llx +100 lkey=0x%x] [0x%llx +100 lkey=0x%x] bytes=200\n"
             "wqe qp=0x%x index=3 NOP ds=1 ce=2\n"
             "wqe qp=0x%x index=4 RDMA_WRITE ds=3 ce=0 raddr=0x%llx rkey=0x%x"
             " [0x%llx +1 lkey=0x%x] bytes=1\n"
             "cqe qp=0x%x index=4 cq=0x%x REQ_ERR RDMA_WRITE syndrome=0x13"
             " (remote access)\n"
             "cqe qp=0x%x index=5 cq=0x%x REQ_ERR RDMA_WRITE syndrome=0x05"
             " (flushed)\n",
             n.qpn, buf + 4096, n.lkey, buf, n.lkey, n.qpn, n.qpn, buf + 4096,
             n.lkey, buf, n.lkey, buf, n.lkey, n.qpn, n.qpn, buf + 4096,
             n.lkey ^ 0xff, buf, n.lkey, n.qpn, n.cqn, n.qpn, n.cqn);
    trace_is(expected);
    node_close(&n);
}

static void wqe__waits_and_is_tried_again__one_line(void **state)
{
    const struct node_cfg cfg = { .rnr_retry = 7 };
    char expected[400];
    struct post post;
    struct node n;

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    node_connect(&n, 0x504);
    post = post_send(&n, 0, 30);
    node_post(&n, &post);                 /* there is no receive yet */
    node_recv(&n, n.buf + 8192, 64);
    node_recv_ring(&n);
    node_wait(&n);
    node_wait(&n);
    snprintf(expected, sizeof(expected),
             "wqe qp=0x%x index=0 SEND ds=2 ce=2 [0x%llx +30 lkey=0x%x]"
             " bytes=30\n", n.qpn, (unsigned long long)(uintptr_t)n.buf,
             n.lkey);
    trace_is(expected);
    node_close(&n);
}

static void wqe__wrong__shown_as_it_is(void **state)
{
    const struct node_cfg cfg = { .rnr_retry = 7 };
    char expected[600];
    struct post post;
    struct node n;

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    node_connect(&n, 0x504);
    post             = post_send(&n, 0, 30);
    post.opcode      = 0x77;
    post.opmod       = 3;
    post.nseg        = 0;
    post.index_delta = 1;
    post.qpn_delta   = 1;
    node_post(&n, &post);
    snprintf(expected, sizeof(expected),
             "wqe qp=0x%x index=0 opcode=0x77 ds=1 ce=2 opmod=0x3 wqe_index=1"
             " qpn=0x%x bytes=0\n"
             "cqe qp=0x%x index=0 cq=0x%x REQ_ERR opcode=0x77 syndrome=0x02"
             " (local QP operation)\n", n.qpn, n.qpn + 1, n.qpn, n.cqn);
    trace_is(expected);
    node_close(&n);
}

/* ---- firmware commands ---- */

static void cmd__create_mkey__fields_by_name(void **state)
{
    uint8_t in[PRM_BYTES(create_mkey_in)]   = { 0 };
    uint8_t out[PRM_BYTES(create_mkey_out)] = { 0 };
    uint8_t *mkc        = PRM_ADDR(create_mkey_in, in, memory_key_mkey_entry);
    struct vhca_cmd cmd = {
        .in = in, .inlen = sizeof(in), .out = out, .outlen = sizeof(out)
    };

    (void)state;
    PRM_SET(create_mkey_in, in, opcode, 0x200);
    PRM_SET(create_mkey_in, in, mkey_umem_id, 7);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, start_addr, 0x123456789abcdef0);
    PRM_SET(create_mkey_out, out, mkey_index, 0xabc);
    vhca_trace_cmd(&cmd, "CREATE_MKEY", "create_mkey_in", true);

    cmd.fw = (struct vhca_fw) { VHCA_FW_EXCEED_LIM, 0x1234 };
    vhca_trace_cmd(&cmd, "CREATE_MKEY", "create_mkey_in", false);
    trace_is("cmd CREATE_MKEY OK in: opcode=0x200 mkc.rw=0x1 mkc.qpn=0xffffff"
             " mkc.start_addr=0x123456789abcdef0 mkey_umem_id=0x7 out:"
             " mkey_index=0xabc\n"
             "cmd CREATE_MKEY EXCEED_LIM (status=0x08 syndrome=0x1234) in:"
             " opcode=0x200 mkc.rw=0x1 mkc.qpn=0xffffff"
             " mkc.start_addr=0x123456789abcdef0 mkey_umem_id=0x7\n");
}

static void cmd__long_fields_and_paths__in_full(void **state)
{
    uint8_t in[PRM_BYTES(init2rtr_qp_in)] = { 0 };
    uint8_t out[16]                       = { 0 };
    uint8_t *qpc        = PRM_ADDR(init2rtr_qp_in, in, qpc);
    uint8_t *ads        = PRM_ADDR(qpc, qpc, primary_address_path);
    uint8_t *ads2       = PRM_ADDR(qpc, qpc, secondary_address_path);
    struct vhca_cmd cmd = {
        .in = in, .inlen = sizeof(in), .out = out, .outlen = sizeof(out)
    };

    (void)state;
    PRM_SET(init2rtr_qp_in, in, opcode, 0x503);
    PRM_SET(ads, ads, rlid, 5);
    memcpy(PRM_ADDR(ads, ads, rgid_rip),
           "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x1", 16);
    PRM_SET(ads, ads2, sl, 3);
    vhca_trace_cmd(&cmd, "INIT2RTR_QP", "init2rtr_qp_in", true);
    trace_is("cmd INIT2RTR_QP OK in: opcode=0x503 qpc.ads.rlid=0x5"
             " qpc.ads.rgid_rip=0xfe800000000000000000000000000001"
             " qpc.secondary.sl=0x3\n");
}

static void cmd__capability_page__by_the_page_asked_for(void **state)
{
    static uint8_t out[PRM_BYTES(query_hca_cap_out)];
    uint8_t in[PRM_BYTES(query_hca_cap_in)] = { 0 };
    uint8_t *page       = PRM_ADDR(query_hca_cap_out, out, capability);
    struct vhca_cmd cmd = {
        .in = in, .inlen = sizeof(in), .out = out, .outlen = sizeof(out)
    };

    (void)state;
    PRM_SET(query_hca_cap_in, in, opcode, 0x100);
    PRM_SET(query_hca_cap_in, in, op_mod, 0x01);
    PRM_SET(cmd_hca_cap, page, log_max_qp, 0x10);
    vhca_trace_cmd(&cmd, "QUERY_HCA_CAP", "query_hca_cap_in", true);
    PRM_SET(query_hca_cap_in, in, op_mod, 0x09);
    memset(out, 0, sizeof(out));
    PRM_SET(roce_cap, page, roce_version, 4);
    vhca_trace_cmd(&cmd, "QUERY_HCA_CAP", "query_hca_cap_in", true);
    trace_is("cmd QUERY_HCA_CAP OK in: opcode=0x100 op_mod=0x1 out:"
             " log_max_qp=0x10\n"
             "cmd QUERY_HCA_CAP OK in: opcode=0x100 op_mod=0x9 out:"
             " roce_version=0x4\n");
}

static void cmd__none_of_ours__by_its_number(void **state)
{
    uint8_t in[16]      = { 0x07, 0x17 };
    uint8_t out[16]     = { 0 };
    struct vhca_cmd cmd = {
        .in = in, .inlen = sizeof(in), .out = out, .outlen = sizeof(out),
        .fw = { VHCA_FW_BAD_OP, 0 }
    };
    struct vhca_uobj key = { .kind = VHCA_UOBJ_DEVX_MKEY, .number = 0x31 };
    struct vhca_uobj pd  = { .kind = VHCA_UOBJ_PD, .number = 1 };

    (void)state;
    vhca_trace_cmd(&cmd, NULL, NULL, false);
    vhca_trace_destroy(&key, true);
    vhca_trace_destroy(&pd, true);
    trace_is("cmd 0x717 BAD_OP (status=0x02 syndrome=0x0)\n"
             "cmd DESTROY_MKEY OK in: mkey_index=0x31\n");
}

/* ---- lines ---- */

static void line__too_long__ends_in_dots(void **state)
{
    struct vhca_trace trace;
    char *text, *end;
    unsigned i;

    (void)state;
    vhca_trace_begin(&trace, "long");
    for (i = 0; i < VHCA_TRACE_LINE; ++i) {
        vhca_trace_add(&trace, " %u", i);
    }
    vhca_trace_end(&trace);
    text = trace_text();
    end  = strchr(text, '\n');
    assert_non_null(end);
    assert_true((size_t)(end - text) < VHCA_TRACE_LINE);
    assert_memory_equal(end - 3, "...\n", 5);
    free(text);
}

/* A program that closes what it does not know, and opens something of its own:
 * lines go to the trace yet, and nothing into the other file. */
static void fd__closed_and_reused__lines_go_to_the_trace(void **state)
{
    char other[320], link[64], name[320];
    struct vhca_trace trace;
    struct stat st;
    ssize_t len;
    int fd;

    (void)state;
    for (fd = 3; fd < 256; ++fd) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        len = readlink(link, name, sizeof(name) - 1);
        if (len > 0) {
            name[len] = '\0';
            if (strcmp(name, trace_path) == 0) {
                break;
            }
        }
    }
    assert_true(fd < 256);
    snprintf(other, sizeof(other), "%s/other", node_dir);
    close(fd);
    assert_int_equal(open(other, O_RDWR | O_CREAT, 0600), fd);

    vhca_trace_begin(&trace, "once more");
    vhca_trace_end(&trace);
    trace_is("once more\n");
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    close(fd);
}

static void *write_lines(void *arg)
{
    struct vhca_trace trace;
    unsigned i;

    for (i = 0; i < LINES; ++i) {
        vhca_trace_begin(&trace, "line");
        vhca_trace_add(&trace, " %s %u %s", (const char*)arg, i,
                       "of some length, so that lines could be torn");
        vhca_trace_end(&trace);
    }
    return NULL;
}

static void lines__of_processes_and_threads__whole(void **state)
{
    static const char *const names[THREADS] = { "a", "b", "c", "d" };
    unsigned seen = 0, next[2][THREADS] = { { 0 } }, number, proc;
    char *text, *rest, *line, who;
    pthread_t threads[THREADS];
    int status, pid, tid;
    unsigned i;
    pid_t child;

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its runtime knows no threads in a child of threads */
#endif
    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    for (i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines,
                                        (void*)(uintptr_t)names[i]), 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);

    rest = text = trace_text();
    while (((line = strsep(&rest, "\n")) != NULL) && (*line != '\0')) {
        assert_int_equal(sscanf(line, "%*s %d/%d line %c %u of some length,"
                                " so that lines could be torn", &pid, &tid,
                                &who, &number), 4);
        proc = pid == child;
        assert_true(proc || (pid == getpid()));
        assert_in_range(who, 'a', 'a' + THREADS - 1);
        assert_int_equal(number, next[proc][who - 'a']++);
        ++seen;
    }
    assert_int_equal(seen, 2 * THREADS * LINES);
    free(text);
}

/* A file that cannot be made: said, and the device does not open. */
static void open__no_such_directory__fails(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "/proc/self/exe", "open", NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42);
}

int main(int argc, char **argv)
{
#define TEST(_test) cmocka_unit_test_setup(_test, trace_begin)
    const struct CMUnitTest tests[] = {
        TEST(wqes__each_kind__one_line),
        TEST(wqe__waits_and_is_tried_again__one_line),
        TEST(wqe__wrong__shown_as_it_is),
        TEST(cmd__create_mkey__fields_by_name),
        TEST(cmd__long_fields_and_paths__in_full),
        TEST(cmd__capability_page__by_the_page_asked_for),
        TEST(cmd__none_of_ours__by_its_number),
        TEST(line__too_long__ends_in_dots),
        TEST(fd__closed_and_reused__lines_go_to_the_trace),
        TEST(lines__of_processes_and_threads__whole),
        TEST(open__no_such_directory__fails),
    };

    if ((argc == 2) && (strcmp(argv[1], "open") == 0)) {
        setenv("VHCA_TRACE", "/nonexistent/trace", 1);
        return (vhca_fabric_attach() == -ENOENT) ? 42 : 1;
    }
    return cmocka_run_group_tests(tests, trace_group_setup,
                                  node_group_teardown);
}
