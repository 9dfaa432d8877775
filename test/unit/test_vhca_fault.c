/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults on demand: the text of the rules, and each kind of rule on queues and
 * keys of the NIC side; also set from outside, by vhca-stat. */

#include <sys/socket.h>

#include "vhca_node.h"

#define ALL VHCA_FAULT_ALL

/* ---- the text ---- */

static void parse__good__as_told(void **state)
{
    static const struct {
        const char            *text;
        unsigned               num;
        struct vhca_fault_rule rule;   /* the last one */
    } cases[] = {
        { "", 0, { 0 } },
        { " \t\n", 0, { 0 } },
        { "cmd=CREATE_MKEY", 1,
          { VHCA_FAULT_CMD, 0x200, 0, 1, 1, 0x01, 0, 0 } },
        { "cmd=0x7ff,nth=3,count=2,status=0x8,syndrome=0x1234", 1,
          { VHCA_FAULT_CMD, 0x7ff, 0, 3, 2, 0x08, 0x1234, 0 } },
        { "cmd=2ERR_QP,status=NO_RESOURCES,count=all", 1,
          { VHCA_FAULT_CMD, 0x507, 0, 1, ALL, 0x0f, 0, 0 } },
        { "wqe=RDMA_WRITE,nth=10,syndrome=0x13", 1,
          { VHCA_FAULT_WQE, 0x08, 0, 10, 1, 0, 0x13, 0 } },
        { "wqe=ANY,qpn=0x41,syndrome=21,count=all", 1,
          { VHCA_FAULT_WQE, VHCA_FAULT_ANY, 0x41, 1, ALL, 0, 21, 0 } },
        { "wqe=NOP,syndrome=1", 1,
          { VHCA_FAULT_WQE, 0, 0, 1, 1, 0, 1, 0 } },
        { "link=down", 1, { VHCA_FAULT_LINK, 0, 0, 1, ALL, 0, 0, 0 } },
        { "link=down,qpn=7,nth=2,count=3", 1,
          { VHCA_FAULT_LINK, 0, 7, 2, 3, 0, 0, 0 } },
        { "umem=refuse", 1, { VHCA_FAULT_UMEM, 0, 0, 1, ALL, 0, 0, ENOMEM } },
        { "umem=refuse,errno=EFAULT,nth=4", 1,
          { VHCA_FAULT_UMEM, 0, 0, 4, ALL, 0, 0, EFAULT } },
        { "umem=refuse,errno=12", 1,
          { VHCA_FAULT_UMEM, 0, 0, 1, ALL, 0, 0, 12 } },
        { "mkey_umem=refuse", 1,
          { VHCA_FAULT_MKEY_UMEM, 0, 0, 1, ALL, 0x03, 0, 0 } },
        { "mkey_umem=refuse,status=BAD_OP,syndrome=9", 1,
          { VHCA_FAULT_MKEY_UMEM, 0, 0, 1, ALL, 0x02, 9, 0 } },
        { "mkey_umem=refuse,errno=EOPNOTSUPP", 1,
          { VHCA_FAULT_MKEY_KERNEL, 0, 0, 1, ALL, 0x03, 0, EOPNOTSUPP } },
        { "mkeys=100", 1, { VHCA_FAULT_MKEYS, 100, 0, 1, ALL, 0x08, 0, 0 } },
        { "mkeys=0,status=0xf", 1,
          { VHCA_FAULT_MKEYS, 0, 0, 1, ALL, 0x0f, 0, 0 } },
        { "device=fatal", 1, { VHCA_FAULT_DEVICE, 8, 0, 0, 1, 0, 0, 0 } },
        { "device=port_down,nth=5,pid=77", 1,
          { VHCA_FAULT_DEVICE, 10, 77, 5, 1, 0, 0, 0 } },
        { "device=port_up", 1, { VHCA_FAULT_DEVICE, 9, 0, 0, 1, 0, 0, 0 } },
        { " link = down , qpn = 7 ; umem=refuse\t; ", 2,
          { VHCA_FAULT_UMEM, 0, 0, 1, ALL, 0, 0, ENOMEM } },
        { "mkeys=1;mkeys=2;mkeys=3;mkeys=4;mkeys=5;mkeys=6;mkeys=7;mkeys=8;"
          "mkeys=9;mkeys=10;mkeys=11;mkeys=12;mkeys=13;mkeys=14;mkeys=15;"
          "mkeys=16", 16, { VHCA_FAULT_MKEYS, 16, 0, 1, ALL, 0x08, 0, 0 } },
    };
    struct vhca_fault_rule rules[VHCA_FAULT_RULES];
    unsigned i, num;
    char why[512];

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (!vhca_fault_parse(cases[i].text, rules, &num, why, sizeof(why))) {
            fail_msg("\"%s\": %s", cases[i].text, why);
        }
        assert_int_equal(num, cases[i].num);
        if (num > 0) {
            if (memcmp(&rules[num - 1], &cases[i].rule, sizeof(rules[0]))) {
                fail_msg("\"%s\" became another rule", cases[i].text);
            }
        }
    }
}

static void parse__bad__says_where_and_what(void **state)
{
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        { "cmd", "character 1:", "name=value is missing" },
        { "cmd=", "character 5:", "cmd takes a number from 1 to 0xffff" },
        { "cmd=CREATE_FOO", "character 5:", "CREATE_MKEY" },
        { "cmd=0x10000", "character 5:", "0xffff" },
        { "foo=1", "character 1:", "begins with one of cmd, wqe, link" },
        { "nth=1", "character 1:", "begins with one of" },
        { "cmd=CREATE_QP,nht=3", "character 15:",
          "after cmd may follow: nth count status syndrome" },
        { "cmd=CREATE_QP,qpn=3", "character 15:", "may follow: nth" },
        { "cmd=CREATE_QP,nth=0", "character 19:", "from 1 to" },
        { "cmd=CREATE_QP,nth=-1", "character 19:", "from 1 to" },
        { "cmd=CREATE_QP,nth=1x", "character 19:", "from 1 to" },
        { "cmd=CREATE_QP,count=0", "character 21:", "or: all" },
        { "cmd=CREATE_QP,status=0x100", "character 22:", "EXCEED_LIM" },
        { "cmd=CREATE_QP,status=OK", "character 22:", "NO_RESOURCES" },
        { "cmd=CREATE_QP,nth=1,nth=2", "character 21:",
          "nth is there already" },
        { "cmd=CREATE_QP,,nth=2", "character 15:", "name=value is missing" },
        { "cmd=CREATE_QP nth=2", "character 15:", "\",\" or \";\" is missing" },
        { "wqe=RDMA_WRITE", "character 1:", "wqe needs a syndrome" },
        { "wqe=RDMA_WROTE,syndrome=1", "character 5:", "RDMA_WRITE" },
        { "wqe=SEND,syndrome=0x30", "character 19:", "from 1 to 0x2f" },
        { "wqe=SEND,syndrome=1,status=1", "character 21:",
          "after wqe may follow: nth count syndrome qpn" },
        { "link=up", "character 6:", "link takes: down" },
        { "link=down,qpn=0x1000000", "character 15:", "0xffffff" },
        { "umem=yes", "character 6:", "umem takes: refuse" },
        { "umem=refuse,errno=EWHAT", "character 19:", "ENOMEM, EFAULT" },
        { "link=down;mkey_umem=refuse,status=1,errno=ENOMEM", "character 11:",
          "one of both" },
        { "mkeys=many", "character 7:", "from 0 to" },
        { "mkeys=1,nth=2", "character 9:", "after mkeys may follow: status" },
        { "device=gone", "character 8:",
          "device takes: fatal, port_down, port_up" },
        { "device=fatal,qpn=1", "character 14:",
          "after device may follow: nth pid" },
        { "device=fatal,pid=0", "character 18:", "from 1 to" },
        { "link=down;;", "character 11:", "name=value is missing" },
        { "mkeys=1;mkeys=2;mkeys=3;mkeys=4;mkeys=5;mkeys=6;mkeys=7;mkeys=8;"
          "mkeys=9;mkeys=0;mkeys=1;mkeys=2;mkeys=3;mkeys=4;mkeys=5;mkeys=6;"
          "mkeys=7", "character 129:", "16 rules at most" },
    };
    struct vhca_fault_rule rules[VHCA_FAULT_RULES];
    unsigned i, num;
    char why[512];

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (vhca_fault_parse(cases[i].text, rules, &num, why, sizeof(why))) {
            fail_msg("\"%s\" was taken", cases[i].text);
        }
        if ((strstr(why, cases[i].where) != why) ||
            (strstr(why, cases[i].what) == NULL)) {
            fail_msg("\"%s\": \"%s\", not \"%s ... %s\"", cases[i].text, why,
                     cases[i].where, cases[i].what);
        }
    }
}

static void parse__too_long__refused(void **state)
{
    struct vhca_fault_rule rules[VHCA_FAULT_RULES];
    char text[VHCA_FAULT_TEXT + 1], why[512];
    unsigned num;

    (void)state;
    memset(text, ' ', sizeof(text));
    text[VHCA_FAULT_TEXT - 1] = '\0';
    assert_true(vhca_fault_parse(text, rules, &num, why, sizeof(why)));
    text[VHCA_FAULT_TEXT - 1] = ' ';
    text[VHCA_FAULT_TEXT]     = '\0';
    assert_false(vhca_fault_parse(text, rules, &num, why, sizeof(why)));
    assert_non_null(strstr(why, "no text is longer than 511"));
}

/* ---- at work ---- */

/* vhca-stat, with its output if there is to be any */
static int stat_run(const char *args, char *out, size_t size)
{
    const char *build = getenv("HIXL_BUILD");
    char command[700];
    size_t len;
    int status;
    FILE *pipe;

    snprintf(command, sizeof(command), "%s/vhca-stat %s 2>&1",
             build ? build : ".", args);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    len      = fread(out, 1, size - 1, pipe);
    out[len] = '\0';
    status   = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void fault_set(const char *text)
{
    char args[600], out[1000];

    snprintf(args, sizeof(args), "--fault '%s'", text);
    if (stat_run(args, out, sizeof(out)) != 0) {
        fail_msg("%s: %s", args, out);
    }
}

static long long hits(void)
{
    char out[1000];

    assert_int_equal(stat_run("fault.hits", out, sizeof(out)), 0);
    return strtoll(out, NULL, 10);
}

/* A QP connected to itself */
static struct node loop;

static int loop_setup(void **state)
{
    const struct node_cfg cfg = {
        .rnr_retry = 7, .ack_timeout = 14, .retry_count = 1
    };
    char out[1000];

    (void)state;
    node_open(&loop, &cfg);
    loop.peer = node_info(&loop);
    node_connect(&loop, 0x504);
    assert_int_equal(stat_run("--reset", out, sizeof(out)), 0);
    return 0;
}

static int loop_teardown(void **state)
{
    (void)state;
    fault_set("");
    node_close(&loop);
    return 0;
}

static uint16_t post_one(uint8_t opcode)
{
    struct post post = post_rdma(&loop, opcode, 0, 4096, 100);

    return node_post(&loop, &post);
}

static void wqe__nth_of_an_opcode__only_it_fails(void **state)
{
    uint16_t index;
    unsigned i;

    (void)state;
    fault_set("wqe=RDMA_WRITE,nth=3,syndrome=0x13");
    for (i = 1; i <= 4; ++i) {
        index = post_one(0x10);           /* reads do not count */
        cqe_is(node_wait(&loop), 0, 0, index);
        memset(loop.buf, i, 100);
        index = post_one(0x08);
        if (i == 3) {
            cqe_is(node_wait(&loop), 13, 0x13, index);
            break;
        }
        cqe_is(node_wait(&loop), 0, 0, index);
    }
    assert_int_equal(loop.buf[4096], 2);  /* it did not execute */
    assert_int_equal(hits(), 1);
    index = post_one(0x08);               /* the QP is in error */
    cqe_is(node_wait(&loop), 13, 0x05, index);
}

static void wqe__of_another_qp__does_not_fail(void **state)
{
    char text[80];
    uint16_t index;

    (void)state;
    snprintf(text, sizeof(text), "wqe=ANY,syndrome=0x15,qpn=%u",
             loop.qpn ^ 1);
    fault_set(text);
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 0, 0, index);

    snprintf(text, sizeof(text), "wqe=ANY,syndrome=0x15,qpn=%u", loop.qpn);
    fault_set(text);
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 13, 0x15, index);
}

static void link__down__retry_exceeded(void **state)
{
    double begin = now_s();
    uint16_t index;

    (void)state;
    fault_set("link=down");
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 13, 0x15, index);
    /* (retry_count + 1) * 4.096 us * 2^ack_timeout */
    assert_true(now_s() - begin > 0.1);
    assert_true(hits() >= 2);
}

static void link__some_packets_lost__arrives_after_retries(void **state)
{
    uint16_t index;

    (void)state;
    fault_set("link=down,nth=2,count=1");
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 0, 0, index);
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 0, 0, index);
    assert_int_equal(hits(), 1);
}

static void link__comes_back__goes_on(void **state)
{
    /* 8.6 s until it gives up: longer than it takes to mend the link */
    const struct node_cfg cfg = {
        .rnr_retry = 7, .ack_timeout = 18, .retry_count = 7
    };
    struct post post;
    struct node node;

    (void)state;
    node_open(&node, &cfg);
    node.peer = node_info(&node);
    node_connect(&node, 0x504);
    fault_set("link=down");
    post = post_rdma(&node, 0x08, 0, 4096, 100);
    node_post(&node, &post);
    assert_null(node_poll(&node));
    fault_set("");
    cqe_is(node_wait(&node), 0, 0, 0);
    node_close(&node);
}

static bool one_key(struct vhca_fw *fw, uint32_t *index_p)
{
    const struct vhca_mkey_attr attr = {
        .owner = loop.owner, .pdn = loop.pdn, .start = (uint64_t)loop.buf,
        .len = 4096, .qpn = 0xffffff, .lr = true
    };

    return vhca_mkey_create(&attr, index_p, fw);
}

static void mkeys__at_the_limit__refused_until_one_is_gone(void **state)
{
    uint32_t index[2];
    struct vhca_fw fw;

    (void)state;
    fault_set("mkeys=4");                 /* the node has two */
    assert_true(one_key(&fw, &index[0]));
    assert_true(one_key(&fw, &index[1]));
    assert_false(one_key(&fw, &index[1]));
    assert_int_equal(fw.status, VHCA_FW_EXCEED_LIM);
    assert_true(vhca_mkey_destroy(loop.owner, index[0], &fw));
    assert_true(one_key(&fw, &index[0]));
    fault_set("mkeys=4,status=NO_RESOURCES,syndrome=0x77");
    assert_false(one_key(&fw, &index[1]));
    assert_int_equal(fw.status, VHCA_FW_NO_RESOURCES);
    assert_int_equal(fw.syndrome, 0x77);
}

static void cmd__window__hits_exactly_that(void **state)
{
    struct vhca_fw fw = { 0, 0 };
    unsigned i;

    (void)state;
    fault_set("cmd=CREATE_MKEY,nth=3,count=2,status=0x8,syndrome=0x1234;"
              "cmd=CREATE_MKEY,nth=5,status=0x2");
    for (i = 1; i <= 7; ++i) {
        assert_false(vhca_fault_cmd(0x500, &fw));
        assert_int_equal(vhca_fault_cmd(0x200, &fw), (i >= 3) && (i <= 5));
        if ((i == 3) || (i == 4)) {
            assert_int_equal(fw.status, 0x08);
            assert_int_equal(fw.syndrome, 0x1234);
        } else if (i == 5) {
            assert_int_equal(fw.status, 0x02);
            assert_int_equal(fw.syndrome, 0);
        }
    }
    assert_int_equal(hits(), 3);
}

static void umem_and_mkey_umem__kernel_and_firmware__each_its_own(void **state)
{
    struct vhca_fw fw = { 0, 0 };

    (void)state;
    fault_set("umem=refuse,errno=EFAULT,nth=2");
    assert_int_equal(vhca_fault_umem(), 0);
    assert_int_equal(vhca_fault_umem(), -EFAULT);
    assert_int_equal(vhca_fault_umem(), -EFAULT);
    assert_false(vhca_fault_mkey_umem(&fw));
    assert_int_equal(vhca_fault_mkey_kernel(), 0);

    fault_set("mkey_umem=refuse");
    assert_int_equal(vhca_fault_umem(), 0);
    assert_true(vhca_fault_mkey_umem(&fw));
    assert_int_equal(fw.status, VHCA_FW_BAD_PARAM);
    assert_int_equal(vhca_fault_mkey_kernel(), 0);

    fault_set("mkey_umem=refuse,errno=EINVAL");
    assert_false(vhca_fault_mkey_umem(&fw));
    assert_int_equal(vhca_fault_mkey_kernel(), -EINVAL);
}

static void replaced__while_running__counts_anew(void **state)
{
    struct vhca_fw fw;
    char out[1000];

    (void)state;
    fault_set("cmd=CREATE_QP,nth=2");
    assert_false(vhca_fault_cmd(0x500, &fw));
    fault_set("cmd=CREATE_QP,nth=2");
    assert_false(vhca_fault_cmd(0x500, &fw));
    assert_true(vhca_fault_cmd(0x500, &fw));
    assert_int_equal(stat_run("--faults", out, sizeof(out)), 0);
    assert_string_equal(out, "1 of 2: cmd=CREATE_QP,nth=2\n");
    fault_set("");
    assert_false(vhca_fault_cmd(0x500, &fw));
    assert_int_equal(stat_run("--faults", out, sizeof(out)), 0);
    assert_string_equal(out, "");
}

/* What a writer that died half way leaves is no rule, and the next one's is. */
static void replaced__writer_died__no_faults_until_the_next(void **state)
{
    struct vhca_faults *faults = &NIC_FAB->hdr.faults;
    struct vhca_fw fw;

    (void)state;
    fault_set("cmd=CREATE_QP,count=all");
    assert_true(vhca_fault_cmd(0x500, &fw));
    atomic_fetch_add(&faults->seq, 1);
    assert_false(vhca_fault_cmd(0x500, &fw));
    fault_set("cmd=CREATE_QP,count=all");
    assert_true(vhca_fault_cmd(0x500, &fw));
}

static void stat__bad_rules__refused_and_the_old_stay(void **state)
{
    struct vhca_fw fw;
    char out[1000];

    (void)state;
    fault_set("cmd=CREATE_QP,count=all");
    assert_int_equal(stat_run("--fault cmd=NONE", out, sizeof(out)), 2);
    assert_non_null(strstr(out, "--fault, character 5:"));
    assert_true(vhca_fault_cmd(0x500, &fw));
}

static void all_processes__set_once__in_each(void **state)
{
    const struct node_cfg cfg = { .rnr_retry = 7 };
    struct post post;
    struct peer peer;
    struct node node;

    (void)state;
    pair_open(&node, &peer, &cfg);
    fault_set("wqe=RDMA_WRITE,syndrome=0x14,nth=2");
    post = post_rdma(&node, 0x08, 0, 0, 10);
    node_post(&node, &post);
    cqe_is(node_wait(&node), 0, 0, 0);
    peer.page->post      = post;
    peer.page->post.addr = (uint64_t)node.buf;
    peer.page->post.rkey = node.lkey;
    peer.page->post.seg[0].addr = peer.page->info.buf;
    peer.page->post.seg[0].lkey = peer.page->info.rkey;
    peer_call(&peer, PEER_POST, 0, 0, 0);
    cqe_is(peer_cqe(&peer), 13, 0x14, 0);
    fault_set("");
    pair_close(&node, &peer);
}

/* ---- VHCA_FAULT, of a process alone ---- */

static void env__own_rules__in_this_process_only(void **state)
{
    struct vhca_fw fw;
    pid_t pid;
    int status;

    (void)state;
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("VHCA_FAULT", "cmd=CREATE_CQ,nth=2", 1);
        if (vhca_fabric_attach() != 0) {
            _exit(1);
        }
        _exit(vhca_fault_cmd(0x400, &fw) ? 2 :
              !vhca_fault_cmd(0x400, &fw) ? 3 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(vhca_fault_cmd(0x400, &fw));
    assert_false(vhca_fault_cmd(0x400, &fw));
    assert_int_equal(hits(), 1);
}

/* 0, or which step went wrong: in a process of its own, since a device that was
 * taken away does not come back. `once`: told by vhca-stat, not by a WQE. */
static int lose_device(bool once)
{
    const struct node_cfg cfg = {
        .rnr_retry = 7, .ack_timeout = 14, .retry_count = 1
    };
    uint32_t event[4] = { 0 }, chan;
    char text[80];
    unsigned i;
    int fd;

    node_open(&loop, &cfg);
    loop.peer = node_info(&loop);
    node_connect(&loop, 0x504);
    if (vhca_channel_create(loop.owner, VHCA_CHANNEL_ASYNC, false, &fd,
                            &chan) != 0) {
        return 1;
    }

    snprintf(text, sizeof(text), "device=fatal,pid=%d%s", (int)getpid(),
             once ? "" : ",nth=3");
    if (once) {
        post_one(0x08);
        if (node_poll(&loop) == NULL) {
            return 2;
        }
    }
    fault_set(text);
    for (i = 1; !once && (i <= 2); ++i) {
        post_one(0x08);
        if ((node_poll(&loop) == NULL) || vhca_device_removed()) {
            return 3;
        }
    }
    if (once && !vhca_device_removed()) {
        return 4;
    }

    memset(loop.buf, 7, 100);
    post_one(0x08);
    post_one(0x08);
    if (!vhca_device_removed() || (node_poll(&loop) != NULL) ||
        (loop.buf[4096] == 7)) {
        return 5;
    }
    if ((recv(fd, event, sizeof(event), MSG_DONTWAIT) != sizeof(event)) ||
        (event[0] != 0) || (event[2] != VHCA_EVENT_DEVICE_FATAL)) {
        return 6;
    }
    return (recv(fd, event, sizeof(event), MSG_DONTWAIT) < 0) ? 0 : 7;
}

static void device__fatal__its_process_only_and_told_once(void **state)
{
    uint16_t index;
    int status, i;
    pid_t pid;

    (void)state;
    for (i = 0; i < 2; ++i) {
        fflush(NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            _exit(lose_device(i == 0));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_false(vhca_device_removed());
    index = post_one(0x08);
    cqe_is(node_wait(&loop), 0, 0, index);
}

static void env__bad__the_device_does_not_open(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("VHCA_FAULT", "cmd=CREATE_CQ,nht=2", 1);
        _exit(vhca_fabric_attach() == -EINVAL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define ON_LOOP(_test) \
    cmocka_unit_test_setup_teardown(_test, loop_setup, loop_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__good__as_told),
        cmocka_unit_test(parse__bad__says_where_and_what),
        cmocka_unit_test(parse__too_long__refused),
        ON_LOOP(wqe__nth_of_an_opcode__only_it_fails),
        ON_LOOP(wqe__of_another_qp__does_not_fail),
        ON_LOOP(link__down__retry_exceeded),
        ON_LOOP(link__some_packets_lost__arrives_after_retries),
        ON_LOOP(link__comes_back__goes_on),
        ON_LOOP(mkeys__at_the_limit__refused_until_one_is_gone),
        ON_LOOP(cmd__window__hits_exactly_that),
        ON_LOOP(umem_and_mkey_umem__kernel_and_firmware__each_its_own),
        ON_LOOP(replaced__while_running__counts_anew),
        ON_LOOP(replaced__writer_died__no_faults_until_the_next),
        ON_LOOP(stat__bad_rules__refused_and_the_old_stay),
        ON_LOOP(all_processes__set_once__in_each),
        ON_LOOP(env__own_rules__in_this_process_only),
        ON_LOOP(device__fatal__its_process_only_and_told_once),
        ON_LOOP(env__bad__the_device_does_not_open),
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
