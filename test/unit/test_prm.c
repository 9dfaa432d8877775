/* SPDX-License-Identifier: BSD-3-Clause */

/* Reading and writing fields of mailboxes. */

#include "golden.h"

#include "mlx5/prm.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void set__field_inside_a_dword__neighbours_kept(void **state)
{
    uint8_t in[PRM_BYTES(qpc)];
    uint8_t expected[sizeof(in)];

    (void)state;
    memset(in, 0xff, sizeof(in));
    memset(expected, 0xff, sizeof(expected));
    golden_bits(expected, 0x51, 4, 0);
    PRM_SET(qpc, in, log_sq_size, 0);
    assert_memory_equal(in, expected, sizeof(in));

    memset(in, 0, sizeof(in));
    memset(expected, 0, sizeof(expected));
    golden_bits(expected, 0x51, 4, 1);
    PRM_SET(qpc, in, log_sq_size, 15);
    assert_memory_equal(in, expected, sizeof(in));
    assert_int_equal(PRM_GET(qpc, in, log_sq_size), 15);
    assert_int_equal(PRM_GET(qpc, in, ts_format), 0);
}

static void set__whole_dword__big_endian(void **state)
{
    uint8_t in[PRM_BYTES(create_qp_in)] = {0};
    const uint8_t expected[4]           = {0x80, 0x23, 0x45, 0x67};

    (void)state;
    PRM_SET(create_qp_in, in, wq_umem_id, 0x80234567);
    assert_memory_equal(in + 0x108, expected, sizeof(expected));
    assert_int_equal(PRM_GET(create_qp_in, in, wq_umem_id), 0x80234567);
}

static void set64__any__big_endian(void **state)
{
    uint8_t in[PRM_BYTES(mkc)] = {0};
    const uint8_t expected[8]  = {0x81, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    PRM_SET64(mkc, in, start_addr, 0x8102030405060708);
    assert_memory_equal(in + 0x10, expected, sizeof(expected));
    assert_true(PRM_GET64(mkc, in, start_addr) == 0x8102030405060708);
    assert_true(PRM_GET64(mkc, in, len) == 0);
}

static void set__nested_field__path_of_names(void **state)
{
    uint8_t in[PRM_BYTES(qpc)] = {0};
    uint8_t expected[sizeof(in)] = {0};

    (void)state;
    golden_bits(expected, 0xc0 + 0x40, 5, 1);
    PRM_SET(qpc, in, primary_address_path.ack_timeout, 31);
    assert_memory_equal(in, expected, sizeof(in));
}

/* The signal that a child dies of when it sets a field; 0: it returns */
static int set_in_child(uint64_t value)
{
    int status;
    pid_t pid;

    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint8_t in[PRM_BYTES(qpc)] = {0};

        signal(SIGABRT, SIG_DFL);
        fclose(stderr);
        PRM_SET(qpc, in, log_sq_size, value);
        _exit(0);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void set__value_too_large__aborts(void **state)
{
    (void)state;
    assert_int_equal(set_in_child(15), 0);
    assert_int_equal(set_in_child(16), SIGABRT);
    assert_int_equal(set_in_child(UINT64_C(1) << 32), SIGABRT);
    assert_int_equal(set_in_child(UINT64_MAX), SIGABRT);
}

static void mbox__defined__zeroed_and_aligned(void **state)
{
    static const uint8_t zero[PRM_BYTES(create_qp_in)];
    PRM_MBOX(create_qp_in, in);

    (void)state;
    assert_int_equal(sizeof(in), sizeof(zero));
    assert_memory_equal(in, zero, sizeof(zero));
    assert_int_equal((uintptr_t)in % 8, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set__field_inside_a_dword__neighbours_kept),
        cmocka_unit_test(set__whole_dword__big_endian),
        cmocka_unit_test(set64__any__big_endian),
        cmocka_unit_test(set__nested_field__path_of_names),
        cmocka_unit_test(set__value_too_large__aborts),
        cmocka_unit_test(mbox__defined__zeroed_and_aligned),
    };

    return cmocka_run_group_tests_name("prm", tests, NULL, NULL);
}
