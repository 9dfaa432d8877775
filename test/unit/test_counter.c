/* SPDX-License-Identifier: BSD-3-Clause */

/* Named counters: with the device's table and, for a name it has no room for,
 * without. This program exports the function that the device would. */

#include "golden.h"

#include "mlx5/hx.h"

static uint64_t device_cells[2];
static unsigned device_calls;

__attribute__((visibility("default"))) uint64_t *vhca_counter(const char *name);

uint64_t *vhca_counter(const char *name)
{
    ++device_calls;
    if (strcmp(name, "first") == 0) {
        return &device_cells[0];
    }
    if (strcmp(name, "second") == 0) {
        return &device_cells[1];
    }
    return NULL;
}

static void counter__device_has_it__its_cell_asked_once(void **state)
{
    (void)state;
    device_calls = 0;
    assert_ptr_equal(hx_counter("first"), &device_cells[0]);
    assert_ptr_equal(hx_counter("second"), &device_cells[1]);
    assert_ptr_equal(hx_counter("first"), &device_cells[0]);
    assert_int_equal(device_calls, 2);
}

static void counter__device_has_no_room__own_cell_of_the_name(void **state)
{
    uint64_t *cell  = hx_counter("third");
    uint64_t *other = hx_counter("fourth");

    (void)state;
    assert_non_null(cell);
    assert_non_null(other);
    assert_ptr_not_equal(cell, other);
    assert_true(*cell == 0);
    ++*cell;
    assert_ptr_equal(hx_counter("third"), cell);
    assert_true(*hx_counter("third") == 1);
    assert_true(*hx_counter("fourth") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counter__device_has_it__its_cell_asked_once),
        cmocka_unit_test(counter__device_has_no_room__own_cell_of_the_name),
    };

    return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
