/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the hixl transport into a UCX that has no UCX_PLUGIN_PATH. */

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIXL_EXPORT __attribute__((visibility("default")))

/* The first UCX that finds the transport itself, through UCX_PLUGIN_PATH. */
#define HX_UCX_PLUGIN_MINOR 22

#define HX_TRANSPORT "ucx-hixl/libuct_hixl.so.0"

/* UCX's ucs_status_t is a packed enum of one byte; this library includes no
 * header of UCX, since one binary serves programs that have none. */
typedef signed char hx_status_t;

#define HX_STATUS_UNSUPPORTED ((hx_status_t)-22)

typedef hx_status_t (*hx_query_components_t)(void ***components_p,
                                             unsigned *num_p);

/* What UCX calls to learn of its transports. */
HIXL_EXPORT hx_status_t uct_query_components(void ***components_p,
                                             unsigned *num_p);

/* Said once a process, however often it asks. */
#define HX_SAY_ONCE(_fmt, ...) \
    do { \
        static atomic_flag said = ATOMIC_FLAG_INIT; \
        if (!atomic_flag_test_and_set(&said)) { \
            dprintf(STDERR_FILENO, "libhixl_load: " _fmt "\n", \
                    ##__VA_ARGS__); \
        } \
    } while (0)

/* A handle to the loaded object that has this address; the caller closes it. */
static void *hx_object_of(const void *addr)
{
    struct link_map *map;
    Dl_info info;

    if (dladdr1(addr, &info, (void**)&map, RTLD_DL_LINKMAP) == 0) {
        return NULL;
    }

    /* The main program has an empty name, which dlopen takes as NULL. */
    return dlopen(map->l_name[0] == '\0' ? NULL : map->l_name,
                  RTLD_LAZY | RTLD_NOLOAD);
}

/* The symbol as the object at addr sees it through its own dependencies; that
 * keeps two copies of UCX in one process apart. */
static void *hx_symbol_of(const void *addr, const char *name)
{
    void *handle = hx_object_of(addr);
    void *sym;

    if (handle == NULL) {
        return NULL;
    }

    sym = dlsym(handle, name);
    dlclose(handle); /* the object stays: its caller is in it */
    return sym;
}

static hx_query_components_t hx_find_query(const void *caller)
{
    void *sym = hx_symbol_of(caller, "uct_query_components");
    void *handle;

    if ((sym == NULL) || (sym == (void*)uct_query_components)) {
        sym = dlsym(RTLD_NEXT, "uct_query_components");
    }
    if (sym == NULL) {
        /* A libuct that was opened with RTLD_LOCAL is in no search order. */
        handle = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL) {
            sym = dlsym(handle, "uct_query_components");
            dlclose(handle);
        }
    }

    return (hx_query_components_t)sym;
}

/* Neither libuct nor libucs tells its version; the libucp that was installed
 * beside them does. */
static int hx_ucx_version(const void *libuct_addr, unsigned *major_p,
                          unsigned *minor_p)
{
    void (*get_version)(unsigned *major, unsigned *minor, unsigned *release);
    char path[PATH_MAX];
    const char *slash;
    unsigned release;
    Dl_info info;
    void *libucp;
    int len;

    if (dladdr(libuct_addr, &info) == 0) {
        return -1;
    }

    slash = strrchr(info.dli_fname, '/');
    len   = (slash == NULL) ? 0 : (int)(slash - info.dli_fname) + 1;
    len   = snprintf(path, sizeof(path), "%.*slibucp.so.0", len,
                     info.dli_fname);
    if ((size_t)len >= sizeof(path)) {
        return -1;
    }

    libucp = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (libucp == NULL) {
        return -1;
    }

    /* It stays open: to load it for each query would cost more. */
    get_version = (void (*)(unsigned*, unsigned*, unsigned*))dlsym(
            libucp, "ucp_get_version");
    if (get_version == NULL) {
        return -1;
    }

    get_version(major_p, minor_p, &release);
    return 0;
}

/* Whether a transport that is loaded now would bind to this libuct: its
 * dependency is found by name, which finds the first of two. */
static int hx_is_bindable(hx_query_components_t query)
{
    void *libuct = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
    void *sym;

    if (libuct == NULL) {
        return 0;
    }

    sym = dlsym(libuct, "uct_query_components");
    dlclose(libuct);
    return sym == (void*)query;
}

/* The transport of a build tree as hixl-run names it, else the installed one,
 * found from where this library is. */
static int hx_transport_path(char *path, size_t size)
{
    const char *env = secure_getenv("HIXL_TRANSPORT");
    const char *slash;
    Dl_info info;
    int len;

    if (env != NULL) {
        len = snprintf(path, size, "%s", env);
    } else if (dladdr((void*)uct_query_components, &info) == 0) {
        return -1;
    } else {
        slash = strrchr(info.dli_fname, '/');
        if (slash == NULL) {
            return -1;
        }
        len = snprintf(path, size, "%.*s/" HX_TRANSPORT,
                       (int)(slash - info.dli_fname), info.dli_fname);
    }

    return ((size_t)len < size) ? 0 : -1;
}

/* Makes the transport known to this libuct, or says why not. dlopen serializes
 * threads, runs the constructors once and is cheap after that, so no state is
 * kept here. */
static void hx_load_transport(hx_query_components_t query)
{
    unsigned major, minor;
    char path[PATH_MAX];

    if (!hx_is_bindable(query)) {
        HX_SAY_ONCE("this UCX is not the process's libuct.so.0; the hixl "
                    "transport is not loaded into it");
        return;
    }

    if (hx_ucx_version((void*)query, &major, &minor) != 0) {
        HX_SAY_ONCE("cannot tell the version of this UCX; the hixl transport "
                    "is not loaded");
        return;
    }

    if ((major > 1) || (minor >= HX_UCX_PLUGIN_MINOR)) {
        return;
    }

    if ((major != HX_UCX_MAJOR) || (minor != HX_UCX_MINOR)) {
        HX_SAY_ONCE("the hixl transport was built for UCX %d.%d, this is UCX "
                    "%u.%u; the transport is not loaded", HX_UCX_MAJOR,
                    HX_UCX_MINOR, major, minor);
        return;
    }

    if (hx_transport_path(path, sizeof(path)) != 0) {
        HX_SAY_ONCE("cannot tell where the hixl transport is");
        return;
    }

    /* UCX keeps pointers into it, so it is never unloaded. */
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == NULL) {
        HX_SAY_ONCE("cannot load the hixl transport: %s", dlerror());
    }
}

hx_status_t uct_query_components(void ***components_p, unsigned *num_p)
{
    hx_query_components_t query = hx_find_query(__builtin_return_address(0));

    if (query == NULL) {
        HX_SAY_ONCE("no libuct in this process");
        return HX_STATUS_UNSUPPORTED;
    }

    hx_load_transport(query);
    return query(components_p, num_p);
}
