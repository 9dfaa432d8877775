/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The text of faults:
 *
 *   text = [rule {";" rule}]        rule = item {"," item}
 *   item = name "=" value           blanks around items do not matter
 *
 * The first item of a rule says what it is about, and with that which items may
 * follow. Also vhca-stat's.
 */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "wqe.h"

/* Names are inside, not pointed to: pointers would have to be relocated in
 * every process that the library is loaded into. */
struct word {
    char     name[20];
    uint32_t value;
};

/* By enum vhca_fault_kind, as far as they have names */
static const struct word kinds[] = {
    {"cmd", VHCA_FAULT_CMD},
    {"wqe", VHCA_FAULT_WQE},
    {"link", VHCA_FAULT_LINK},
    {"umem", VHCA_FAULT_UMEM},
    {"mkey_umem", VHCA_FAULT_MKEY_UMEM},
    {"mkeys", VHCA_FAULT_MKEYS},
    {"device", VHCA_FAULT_DEVICE},
    {"", 0}
};

/* What may follow, by kind; a blank around each */
static const char items_of[][40] = {
    [VHCA_FAULT_CMD]       = " nth count status syndrome ",
    [VHCA_FAULT_WQE]       = " nth count syndrome qpn ",
    [VHCA_FAULT_LINK]      = " nth count qpn ",
    [VHCA_FAULT_UMEM]      = " nth count errno ",
    [VHCA_FAULT_MKEY_UMEM] = " nth count status syndrome errno ",
    [VHCA_FAULT_MKEYS]     = " status syndrome ",
    [VHCA_FAULT_DEVICE]    = " nth pid ",
};

static const struct word commands[] = {
    {"QUERY_HCA_CAP", 0x100}, {"QUERY_HCA_VPORT", 0x762},
    {"CREATE_MKEY", 0x200}, {"QUERY_MKEY", 0x201},
    {"CREATE_CQ", 0x400}, {"QUERY_CQ", 0x402}, {"MODIFY_CQ", 0x403},
    {"CREATE_QP", 0x500}, {"RST2INIT_QP", 0x502}, {"INIT2RTR_QP", 0x503},
    {"RTR2RTS_QP", 0x504}, {"RTS2RTS_QP", 0x505}, {"SQERR2RTS_QP", 0x506},
    {"2ERR_QP", 0x507}, {"2RST_QP", 0x50a}, {"QUERY_QP", 0x50b},
    {"SQD2RTS_QP", 0x50c}, {"INIT2INIT_QP", 0x50e}, {"CREATE_SRQ", 0x700},
    {"QUERY_SRQ", 0x702}, {"CREATE_DCT", 0x710}, {"QUERY_LAG", 0x842},
    {"CREATE_RMP", 0x90c}, {"MODIFY_RMP", 0x90d}, {"QUERY_RMP", 0x90f},
    {"", 0}
};

static const struct word opcodes[] = {
    {"ANY", VHCA_FAULT_ANY}, {"NOP", WQE_OP_NOP},
    {"RDMA_WRITE", WQE_OP_RDMA_WRITE},
    {"RDMA_WRITE_IMM", WQE_OP_RDMA_WRITE_IMM},
    {"RDMA_READ", WQE_OP_RDMA_READ}, {"SEND", WQE_OP_SEND},
    {"SEND_IMM", WQE_OP_SEND_IMM}, {"ATOMIC_CS", WQE_OP_ATOMIC_CS},
    {"ATOMIC_FA", WQE_OP_ATOMIC_FA}, {"MASKED_CS", WQE_OP_MASKED_CS},
    {"MASKED_FA", WQE_OP_MASKED_FA},
    {"", 0}
};

static const struct word statuses[] = {
    {"INTERNAL_ERR", VHCA_FW_INTERNAL_ERR}, {"BAD_OP", VHCA_FW_BAD_OP},
    {"BAD_PARAM", VHCA_FW_BAD_PARAM}, {"BAD_SYS_STATE", VHCA_FW_BAD_SYS_STATE},
    {"BAD_RESOURCE", VHCA_FW_BAD_RESOURCE},
    {"RESOURCE_BUSY", VHCA_FW_RESOURCE_BUSY},
    {"EXCEED_LIM", VHCA_FW_EXCEED_LIM},
    {"BAD_RES_STATE", VHCA_FW_BAD_RES_STATE}, {"BAD_INDEX", VHCA_FW_BAD_INDEX},
    {"NO_RESOURCES", VHCA_FW_NO_RESOURCES},
    {"BAD_QP_STATE", VHCA_FW_BAD_QP_STATE},
    {"BAD_INPUT_LEN", VHCA_FW_BAD_INPUT_LEN},
    {"BAD_OUTPUT_LEN", VHCA_FW_BAD_OUTPUT_LEN},
    {"", 0}
};

static const struct word errnos[] = {
    {"ENOMEM", ENOMEM}, {"EFAULT", EFAULT}, {"EINVAL", EINVAL},
    {"EAGAIN", EAGAIN}, {"EPERM", EPERM}, {"ENOSPC", ENOSPC}, {"EIO", EIO},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"", 0}
};

static const struct word refuse_words[] = { {"refuse", 1}, {"", 0} };
static const struct word down_words[]   = { {"down", 1}, {"", 0} };
static const struct word device_words[] = {
    {"fatal", VHCA_EVENT_DEVICE_FATAL}, {"port_down", VHCA_EVENT_PORT_ERR},
    {"port_up", VHCA_EVENT_PORT_ACTIVE}, {"", 0}
};
static const struct word all_words[]    = { {"all", VHCA_FAULT_ALL}, {"", 0} };

struct parser {
    const char *text;
    char       *why;
    size_t      why_size;
};

__attribute__((format(printf, 3, 4)))
static bool refuse(const struct parser *p, const char *at, const char *fmt, ...)
{
    char what[VHCA_FAULT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    snprintf(p->why, p->why_size, "character %zu: %s", at - p->text + 1, what);
    return false;
}

static bool find_word(const struct word *words, const char *name, size_t len,
                      uint32_t *value_p)
{
    for (; words->name[0] != '\0'; ++words) {
        if ((strlen(words->name) == len) &&
            (strncmp(words->name, name, len) == 0)) {
            *value_p = words->value;
            return true;
        }
    }

    return false;
}

/* "a, b, c" of the words, into a buffer */
static const char *list_words(const struct word *words, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (; (words->name[0] != '\0') && (len < size); ++words) {
        len += snprintf(buf + len, size - len, "%s%s", len ? ", " : "",
                        words->name);
    }
    return buf;
}

/* One item: name and value are pieces of the text */
struct item {
    const char *name, *value;
    size_t      name_len, value_len;
};

/* A number in [lo, hi] or one of the words */
static bool get_value(const struct parser *p, const struct item *item,
                      const struct word *words, uint32_t lo, uint32_t hi,
                      uint32_t *value_p)
{
    char digits[20], list[400];
    unsigned long long value;
    char *end;

    if ((words != NULL) &&
        find_word(words, item->value, item->value_len, value_p)) {
        return true;
    }
    if ((item->value_len > 0) && (item->value_len < sizeof(digits)) &&
        isdigit((unsigned char)item->value[0])) {
        memcpy(digits, item->value, item->value_len);
        digits[item->value_len] = '\0';
        value = strtoull(digits, &end, 0);
        if ((*end == '\0') && (value >= lo) && (value <= hi)) {
            *value_p = value;
            return true;
        }
    }

    list[0] = '\0';
    if (words != NULL) {
        list_words(words, list, sizeof(list));
    }
    if (lo > hi) { /* no number at all */
        return refuse(p, item->value, "%.*s takes: %s", (int)item->name_len,
                      item->name, list);
    }
    return refuse(p, item->value, "%.*s takes a number from %u to 0x%x%s%s",
                  (int)item->name_len, item->name, lo, hi,
                  list[0] ? ", or: " : "", list);
}

static bool first_item(const struct parser *p, const struct item *item,
                       struct vhca_fault_rule *rule)
{
    char list[80];
    uint32_t one;

    if (!find_word(kinds, item->name, item->name_len, &rule->kind)) {
        return refuse(p, item->name, "a rule begins with one of %s",
                      list_words(kinds, list, sizeof(list)));
    }

    rule->nth   = 1;
    rule->count = VHCA_FAULT_ALL;
    switch (rule->kind) {
    case VHCA_FAULT_CMD:
        rule->count  = 1;
        rule->status = VHCA_FW_INTERNAL_ERR;
        return get_value(p, item, commands, 1, 0xffff, &rule->what);
    case VHCA_FAULT_WQE:
        rule->count = 1;
        return get_value(p, item, opcodes, 0, 0xff, &rule->what);
    case VHCA_FAULT_LINK:
        return get_value(p, item, down_words, 1, 0, &one);
    case VHCA_FAULT_UMEM:
        rule->err = ENOMEM;
        return get_value(p, item, refuse_words, 1, 0, &one);
    case VHCA_FAULT_MKEY_UMEM:
        rule->status = VHCA_FW_BAD_PARAM;
        return get_value(p, item, refuse_words, 1, 0, &one);
    case VHCA_FAULT_DEVICE:
        rule->nth   = 0;
        rule->count = 1;
        return get_value(p, item, device_words, 1, 0, &rule->what);
    default:
        rule->status = VHCA_FW_EXCEED_LIM;
        return get_value(p, item, NULL, 0, 1u << 24, &rule->what);
    }
}

static bool next_item(const struct parser *p, const struct item *item,
                      struct vhca_fault_rule *rule)
{
    const char *takes = items_of[rule->kind];
    char name[16];

    snprintf(name, sizeof(name), " %.*s ", (int)item->name_len, item->name);
    if ((item->name_len > sizeof(name) - 3) || (strstr(takes, name) == NULL)) {
        return refuse(p, item->name, "after %s may follow:%.*s",
                      kinds[rule->kind].name, (int)strlen(takes) - 1, takes);
    }

    switch (item->name[0]) {
    case 'n':
        return get_value(p, item, NULL, 1, INT32_MAX, &rule->nth);
    case 'c':
        return get_value(p, item, all_words, 1, INT32_MAX, &rule->count);
    case 'q':
        return get_value(p, item, NULL, 1, 0xffffff, &rule->qpn);
    case 'p':
        return get_value(p, item, NULL, 1, INT32_MAX, &rule->qpn);
    case 'e':
        return get_value(p, item, errnos, 1, 133, &rule->err);
    default:
        break;
    }
    if (item->name[1] == 't') {
        return get_value(p, item, statuses, 1, 0xff, &rule->status);
    }
    return (rule->kind == VHCA_FAULT_WQE) ?
           get_value(p, item, NULL, 1, 0x2f, &rule->syndrome) :
           get_value(p, item, NULL, 0, UINT32_MAX, &rule->syndrome);
}

static const char *skip_blanks(const char *at)
{
    while ((*at == ' ') || (*at == '\t') || (*at == '\n')) {
        ++at;
    }
    return at;
}

static bool cut_item(const struct parser *p, const char **at_p,
                     struct item *item)
{
    const char *at = *at_p;

    item->name     = at;
    item->name_len = strcspn(at, "=,; \t\n");
    at             = skip_blanks(at + item->name_len);
    if ((item->name_len == 0) || (*at != '=')) {
        return refuse(p, item->name, "name=value is missing");
    }

    item->value     = skip_blanks(at + 1);
    item->value_len = strcspn(item->value, "=,; \t\n");
    at              = skip_blanks(item->value + item->value_len);
    if ((*at != '\0') && (*at != ',') && (*at != ';')) {
        return refuse(p, at, "\",\" or \";\" is missing");
    }

    *at_p = at;
    return true;
}

/* From the first item to the ';' or the end */
static bool parse_rule(const struct parser *p, const char **at_p,
                       struct vhca_fault_rule *rule)
{
    const char *begin = *at_p;
    struct item item[6]; /* no kind takes more than five others */
    bool verdict      = false;
    unsigned n, i;

    memset(rule, 0, sizeof(*rule));
    for (n = 0;; ++n) {
        if (!cut_item(p, at_p, &item[n])) {
            return false;
        }
        for (i = 1; i < n; ++i) {
            if ((item[i].name_len == item[n].name_len) &&
                (strncmp(item[i].name, item[n].name, item[n].name_len) == 0)) {
                return refuse(p, item[n].name, "%.*s is there already",
                              (int)item[n].name_len, item[n].name);
            }
        }
        if (!((n == 0) ? first_item(p, &item[n], rule) :
                         next_item(p, &item[n], rule))) {
            return false;
        }
        verdict = verdict || (item[n].name[0] == 's');
        if (**at_p != ',') {
            break;
        }
        *at_p = skip_blanks(*at_p + 1);
    }

    if ((rule->kind == VHCA_FAULT_WQE) && (rule->syndrome == 0)) {
        return refuse(p, begin, "wqe needs a syndrome, 0x13 (remote access)"
                      " or 0x15 (retry exceeded), say");
    }
    if ((rule->kind == VHCA_FAULT_MKEY_UMEM) && (rule->err != 0)) {
        if (verdict) {
            return refuse(p, begin, "status and syndrome are the firmware's,"
                          " errno is the kernel's: one of both");
        }
        rule->kind = VHCA_FAULT_MKEY_KERNEL;
    }
    return true;
}

bool vhca_fault_parse(const char *text, struct vhca_fault_rule *rules,
                      unsigned *num_p, char *why, size_t why_size)
{
    struct parser p = { text, why, why_size };
    const char *at  = skip_blanks(text);
    struct vhca_fault_rule rule;
    unsigned num = 0;

    if (strlen(text) >= VHCA_FAULT_TEXT) {
        return refuse(&p, text + VHCA_FAULT_TEXT, "no text is longer than %u",
                      VHCA_FAULT_TEXT - 1);
    }
    while (*at != '\0') {
        if (num == VHCA_FAULT_RULES) {
            return refuse(&p, at, "there are %u rules at most",
                          VHCA_FAULT_RULES);
        }
        if (!parse_rule(&p, &at, &rule)) {
            return false;
        }
        rules[num++] = rule;
        if (*at == ';') {
            at = skip_blanks(at + 1);
        }
    }

    *num_p = num;
    return true;
}

void vhca_faults_set(struct vhca_faults *faults, const char *text,
                     const struct vhca_fault_rule *rules, unsigned num)
{
    /* odd, even if the one before died within */
    uint32_t seq = atomic_load(&faults->seq) | 1;
    unsigned i;

    atomic_store(&faults->seq, seq);
    atomic_store(&faults->num, 0);
    atomic_thread_fence(memory_order_seq_cst);
    memset(faults->rule, 0, sizeof(faults->rule));
    memcpy(faults->rule, rules, num * sizeof(rules[0]));
    snprintf(faults->text, sizeof(faults->text), "%s", text);
    for (i = 0; i < VHCA_FAULT_RULES; ++i) {
        atomic_store(&faults->seen[i], (uint64_t)(seq + 1) << 32);
        atomic_store(&faults->hits[i], (uint64_t)(seq + 1) << 32);
    }
    atomic_store(&faults->seq, seq + 1);
    atomic_store(&faults->num, num);
}
