/* SPDX-License-Identifier: BSD-3-Clause */

/* vhca-stat: what the emulated device has done. Reads the fabric's file without
 * entering the fabric, so it works while processes run and after they ended. */

#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "vhca/nic.h"

#define MAX_VALUES (NIC_STATS + 3 * NIC_GAUGES + NIC_CELLS)

struct value {
    char    name[64];
    int64_t value;
};

static struct value values[MAX_VALUES];
static size_t nvalues;

static const char *const gauge_names[NIC_GAUGES] = { NIC_GAUGE_NAMES };
static const char *const stat_names[NIC_STAT_SYNDROME] = { NIC_STAT_NAMES };

/* Syndromes a name of which is known before one was seen */
static const uint8_t known_syndromes[] = {
    CQE_SYND_LOCAL_LENGTH, CQE_SYND_LOCAL_QP_OP, CQE_SYND_LOCAL_PROT,
    CQE_SYND_FLUSHED, CQE_SYND_BAD_RESP, CQE_SYND_LOCAL_ACCESS,
    CQE_SYND_REMOTE_INVAL_REQ, CQE_SYND_REMOTE_ACCESS, CQE_SYND_REMOTE_OP,
    CQE_SYND_RETRY_EXCEEDED, CQE_SYND_RNR_RETRY_EXCEEDED
};

/* The descriptor stays open for whoever wants the lock that goes with it. */
static struct nic_fabric *fabric_open(bool write, int *fd_p)
{
    struct nic_fabric *fab;
    char dir[256], path[300];
    struct stat st;
    int fd, ret;

    ret = nic_fabric_dir(dir, sizeof(dir));
    if (ret != 0) {
        fprintf(stderr, "vhca-stat: VHCA_DIR or VHCA_FABRIC: %s\n",
                strerror(-ret));
        return NULL;
    }

    snprintf(path, sizeof(path), "%s/fabric", dir);
    fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "vhca-stat: no fabric at %s: %s\n", path,
                strerror(errno));
        return NULL;
    }

    if ((fstat(fd, &st) != 0) || ((size_t)st.st_size != NIC_FILE_SIZE)) {
        fprintf(stderr, "vhca-stat: %s is no fabric of this version\n", path);
        close(fd);
        return NULL;
    }

    fab = mmap(NULL, NIC_FILE_SIZE, PROT_READ | (write ? PROT_WRITE : 0),
               MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (fab == MAP_FAILED) {
        fprintf(stderr, "vhca-stat: %s: %s\n", path, strerror(errno));
        close(fd);
        return NULL;
    }
    if ((fab->hdr.magic != NIC_MAGIC) || (fab->hdr.version != NIC_VERSION) ||
        (fab->hdr.layout != NIC_LAYOUT)) {
        fprintf(stderr, "vhca-stat: %s is no fabric of this version\n", path);
        close(fd);
        return NULL;
    }

    *fd_p = fd;
    return fab;
}

static bool proc_counts(struct nic_proc *proc)
{
    return (atomic_load(&proc->id) != 0) &&
           nic_who_alive(atomic_load(&proc->who));
}

/* Who died and is not swept yet has no objects any more. */
static int64_t gauge_now(struct nic_fabric *fab, unsigned gauge,
                         int64_t *most_p)
{
    uint32_t n = atomic_load(&fab->hdr.nprocs), i;
    int64_t sum = 0, most = 0, value;

    for (i = 0; i < n; ++i) {
        if (proc_counts(&fab->proc[i])) {
            value = atomic_load(&fab->proc[i].gauge[gauge]);
            sum  += value;
            most  = (value > most) ? value : most;
        }
    }

    *most_p = most;
    return sum;
}

static int64_t stat_sum(struct nic_fabric *fab, unsigned stat)
{
    uint32_t n  = atomic_load(&fab->hdr.nprocs), i;
    int64_t sum = atomic_load(&fab->hdr.past[stat]);

    for (i = 0; i < n; ++i) {
        sum += atomic_load(&fab->proc[i].stat[stat]);
    }
    return sum;
}

static void add_value(const char *group, const char *name, int64_t value)
{
    char full[64];
    size_t i;

    snprintf(full, sizeof(full), "%s%s", group, name);
    for (i = 0; i < nvalues; ++i) {
        if (strcmp(values[i].name, full) == 0) {
            values[i].value += value;
            return;
        }
    }

    strcpy(values[nvalues].name, full);
    values[nvalues++].value = value;
}

static bool syndrome_known(unsigned syndrome)
{
    unsigned i;

    for (i = 0; i < sizeof(known_syndromes); ++i) {
        if (known_syndromes[i] == syndrome) {
            return true;
        }
    }
    return false;
}

static void collect(struct nic_fabric *fab)
{
    struct nic_gauge_cell *cell;
    int64_t now, most, value;
    char name[64];
    unsigned i;

    for (i = 0; i < NIC_GAUGES; ++i) {
        cell = &fab->hdr.gauge[i];
        now  = gauge_now(fab, i, &most);
        add_value((i >= NIC_GAUGE_MKEY_REMOTE) ? "" : "objects.",
                  gauge_names[i], now);
        add_value("max.", gauge_names[i], atomic_load(&cell->max));
        if (i >= NIC_GAUGE_MKEY_REMOTE) {
            snprintf(name, sizeof(name), "%s_per_process", gauge_names[i]);
            add_value("max.", name, atomic_load(&cell->max_per_proc));
        }
    }

    for (i = 0; i < NIC_STATS; ++i) {
        value = stat_sum(fab, i);
        if (i < NIC_STAT_SYNDROME) {
            add_value("", stat_names[i], value);
        } else if ((value != 0) || syndrome_known(i - NIC_STAT_SYNDROME)) {
            snprintf(name, sizeof(name), "0x%02x", i - NIC_STAT_SYNDROME);
            add_value("cqe.syndrome.", name, value);
        }
    }

    for (i = 0; i < NIC_CELLS; ++i) {
        if (atomic_load(&fab->hdr.cell[i].state) == 2) {
            add_value("", fab->hdr.cell[i].name,
                      __atomic_load_n(&fab->hdr.cell[i].value,
                                      __ATOMIC_RELAXED));
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct value*)a)->name,
                  ((const struct value*)b)->name);
}

static void reset(struct nic_fabric *fab)
{
    uint32_t n = atomic_load(&fab->hdr.nprocs), i, k;
    int64_t now, most;

    for (k = 0; k < NIC_STATS; ++k) {
        atomic_store(&fab->hdr.past[k], 0);
        for (i = 0; i < n; ++i) {
            atomic_store(&fab->proc[i].stat[k], 0);
        }
    }
    for (k = 0; k < NIC_GAUGES; ++k) {
        now = gauge_now(fab, k, &most);
        atomic_store(&fab->hdr.gauge[k].max, now);
        atomic_store(&fab->hdr.gauge[k].max_per_proc, most);
    }
    for (k = 0; k < NIC_CELLS; ++k) {
        __atomic_store_n(&fab->hdr.cell[k].value, 0, __ATOMIC_RELAXED);
    }
}

static void show_procs(struct nic_fabric *fab)
{
    uint32_t n = atomic_load(&fab->hdr.nprocs), i, k;

    for (i = 0; i < n; ++i) {
        struct nic_proc *proc = &fab->proc[i];

        if (!proc_counts(proc)) {
            continue;
        }
        printf("pid %u", (unsigned)(atomic_load(&proc->who) >> 40));
        for (k = NIC_GAUGE_CTX; k < NIC_GAUGES; ++k) {
            printf(" %s %lld", gauge_names[k],
                   (long long)atomic_load(&proc->gauge[k]));
        }
        printf("\n");
    }
}

/* Values that appear with their first event, and are 0 before */
static bool name_may_come(const char *name)
{
    const char *at = name + 4;

    if ((strncmp(name, "cmd.", 4) != 0) || (*at == '\0')) {
        return false;
    }
    while (isupper((unsigned char)*at) || isdigit((unsigned char)*at) ||
           (*at == '_')) {
        ++at;
    }
    return *at == '\0';
}

static int show_names(char **names, int n)
{
    int i, ret = 0;
    size_t k;

    for (i = 0; i < n; ++i) {
        for (k = 0; k < nvalues; ++k) {
            if (strcmp(values[k].name, names[i]) == 0) {
                printf("%lld\n", (long long)values[k].value);
                break;
            }
        }
        if ((k == nvalues) && name_may_come(names[i])) {
            printf("0\n");
        } else if (k == nvalues) {
            fprintf(stderr, "vhca-stat: no value is named %s\n", names[i]);
            ret = 1;
        }
    }

    return ret;
}

static void show_all(bool json)
{
    size_t i;

    for (i = 0; i < nvalues; ++i) {
        if (json) {
            printf("%s\"%s\": %lld", i ? ",\n  " : "{\n  ", values[i].name,
                   (long long)values[i].value);
        } else {
            printf("%s %lld\n", values[i].name, (long long)values[i].value);
        }
    }
    if (json) {
        printf("\n}\n");
    }
}

/* A rule about the device that names no WQE to wait for */
static void device_now(struct nic_fabric *fab, struct vhca_fault_rule *rule)
{
    uint32_t nprocs = atomic_load(&fab->hdr.nprocs), i, id;
    char dir[256];
    uint64_t who;

    if ((rule->kind != VHCA_FAULT_DEVICE) || (rule->nth != 0) ||
        (nic_fabric_dir(dir, sizeof(dir)) != 0)) {
        return;
    }

    rule->count = 0; /* done: later processes are spared */
    for (i = 0; i < nprocs; ++i) {
        id  = atomic_load(&fab->proc[i].id);
        who = atomic_load(&fab->proc[i].who);
        if ((id != 0) && nic_who_alive(who) &&
            ((rule->qpn == 0) || (rule->qpn == who >> 40))) {
            nic_device_event(fab, dir, id, rule->what);
        }
    }
}

/* For all processes of the fabric, from now on; "" ends it. */
static int set_faults(struct nic_fabric *fab, int fd, const char *text)
{
    struct vhca_fault_rule rules[VHCA_FAULT_RULES];
    char why[VHCA_FAULT_TEXT];
    unsigned num, i;

    if (!vhca_fault_parse(text, rules, &num, why, sizeof(why))) {
        fprintf(stderr, "vhca-stat: --fault, %s\n", why);
        return 2;
    }
    if (flock(fd, LOCK_EX) != 0) {
        fprintf(stderr, "vhca-stat: flock: %s\n", strerror(errno));
        return 1;
    }

    for (i = 0; i < num; ++i) {
        device_now(fab, &rules[i]);
    }
    vhca_faults_set(&fab->hdr.faults, text, rules, num);
    flock(fd, LOCK_UN);
    return 0;
}

/* A line a rule: how often it hit, of how many times it was asked about */
static void show_faults(struct nic_fabric *fab)
{
    struct vhca_faults *faults = &fab->hdr.faults;
    uint32_t num               = atomic_load(&faults->num), i;
    char text[VHCA_FAULT_TEXT], *rest = text, *rule;

    snprintf(text, sizeof(text), "%s", faults->text);
    for (i = 0; (i < num) && ((rule = strsep(&rest, ";")) != NULL); ++i) {
        rule += strspn(rule, " \t\n");
        printf("%u of %u: %s\n", (uint32_t)atomic_load(&faults->hits[i]),
               (uint32_t)atomic_load(&faults->seen[i]), rule);
    }
}

static void usage(FILE *out)
{
    fprintf(out,
            "Usage: vhca-stat [--json] [NAME...]\n"
            "       vhca-stat --procs | --reset | --fault RULES | --faults\n\n"
            "Prints what the emulated device counted, one \"name value\" a"
            " line, or the values\nof the names given. Which fabric: VHCA_DIR"
            " (/dev/shm) and VHCA_FABRIC (default).\n\n"
            "  --json   as one JSON object\n"
            "  --procs  a line for each live process\n"
            "  --reset  counters to zero, high-water marks to now\n"
            "  --fault  makes what RULES say fail, in all processes of the"
            " fabric; '' ends it\n"
            "  --faults what was made to fail, and how often it did\n");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },
        { "procs", no_argument, NULL, 'p' },
        { "reset", no_argument, NULL, 'r' },
        { "fault", required_argument, NULL, 'f' },
        { "faults", no_argument, NULL, 'F' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };
    bool json = false, procs = false, zero = false, faults = false;
    const char *fault = NULL;
    struct nic_fabric *fab;
    int c, fd;

    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (c) {
        case 'j':
            json = true;
            break;
        case 'p':
            procs = true;
            break;
        case 'r':
            zero = true;
            break;
        case 'f':
            fault = optarg;
            break;
        case 'F':
            faults = true;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }

    fab = fabric_open(zero || (fault != NULL), &fd);
    if (fab == NULL) {
        return 1;
    }
    if (fault != NULL) {
        return set_faults(fab, fd, fault);
    }
    if (faults) {
        show_faults(fab);
        return 0;
    }
    if (zero) {
        reset(fab);
        return 0;
    }
    if (procs) {
        show_procs(fab);
        return 0;
    }

    collect(fab);
    qsort(values, nvalues, sizeof(values[0]), by_name);
    if (optind < argc) {
        return show_names(argv + optind, argc - optind);
    }
    show_all(json);
    return 0;
}
