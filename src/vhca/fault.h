/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Faults on demand: what the device is told to do wrong, and when. Rules come
 * from VHCA_FAULT, for one process, and from vhca-stat --fault, for every
 * process of the fabric at once. fault_spec.c reads the text, fault.c answers
 * the device's questions.
 */

#ifndef VHCA_FAULT_H_
#define VHCA_FAULT_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vhca.h"

#define VHCA_FAULT_RULES 16
#define VHCA_FAULT_TEXT  512         /* bytes of a text, its end included */
#define VHCA_FAULT_ALL   UINT32_MAX  /* count: from the nth on for ever */
#define VHCA_FAULT_ANY   0x100u      /* wqe: every opcode */

enum vhca_fault_kind {
    VHCA_FAULT_CMD,           /* a firmware command fails */
    VHCA_FAULT_WQE,           /* a WQE fails with an error CQE */
    VHCA_FAULT_LINK,          /* packets get no answer */
    VHCA_FAULT_UMEM,          /* the kernel refuses a umem */
    VHCA_FAULT_MKEY_UMEM,     /* the firmware refuses a key over a umem */
    VHCA_FAULT_MKEYS,         /* a process has this many keys and no more */
    VHCA_FAULT_DEVICE,        /* the device goes, or its port */
    VHCA_FAULT_MKEY_KERNEL    /* mkey_umem with an errno: the kernel refuses */
};

struct vhca_fault_rule {
    uint32_t kind;
    uint32_t what;            /* cmd, wqe: opcode; mkeys: how many; device: the
                                 event */
    uint32_t qpn;             /* wqe, link: this QP; device: this process's
                                 pid; 0: all */
    uint32_t nth;             /* the first that is hit, from 1; device: 0, at
                                 once if it can be */
    uint32_t count;           /* how many are */
    uint32_t status;          /* of the command's output mailbox */
    uint32_t syndrome;        /* of the mailbox, or of the CQE */
    uint32_t err;             /* errno */
};

/** The rules of a text. False: *why_p says where it is wrong and what is
 *  accepted there. */
bool vhca_fault_parse(const char *text, struct vhca_fault_rule *rules,
                      unsigned *num_p, char *why, size_t why_size);

/* Rules at work. They are replaced while others look: a reader that finds seq
 * odd, or changed behind it, has seen none. */
struct vhca_faults {
    _Atomic uint32_t       num;       /* 0: all that is looked at */
    _Atomic uint32_t       seq;
    struct vhca_fault_rule rule[VHCA_FAULT_RULES];
    /* seq << 32 | how many it was asked about, and how many it hit: an answer
     * to an old rule is not counted for the new one */
    _Atomic uint64_t       seen[VHCA_FAULT_RULES];
    _Atomic uint64_t       hits[VHCA_FAULT_RULES];
    char                   text[VHCA_FAULT_TEXT];
} __attribute__((aligned(64)));

/** One writer at a time: that is the caller's affair. */
void vhca_faults_set(struct vhca_faults *faults, const char *text,
                     const struct vhca_fault_rule *rules, unsigned num);

/* ---- what the device asks: fault.c ---- */

/** The firmware command is to fail: true, with the verdict. */
bool vhca_fault_cmd(uint16_t opcode, struct vhca_fw *fw);
/** 0, or the negative errno of a umem's registration. */
int  vhca_fault_umem(void);
/** A key over a umem, as the firmware sees it: false, or true and a verdict. */
bool vhca_fault_mkey_umem(struct vhca_fw *fw);
/** And as the kernel sees it: 0 or a negative errno. */
int  vhca_fault_mkey_kernel(void);

#endif
