/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The firmware's command layouts, written down for the emulated device alone:
 * F(structure, field, bit offset, bits, how). Names are those of Linux'
 * mlx5_ifc.h; fields it keeps reserved but that work on NICs (umem ids and
 * offsets of CQ, QP and mkey) have the names of UCX' ib_mlx5_ifc.h. Bit 0 is
 * the most significant bit of byte 0.
 *
 * "how" says what a command may put there:
 *   PRM_RSV   reserved: must be zero
 *   PRM_NO    exists on NICs, not on this device: must be zero
 *   PRM_KRN   the kernel writes it (uid, *_umem_valid: devx.c,
 *             devx_set_umem_valid), so what the user wrote is lost
 *   PRM_ANY   a hint without effect on results: not looked at
 *   PRM_ALL   looked at by the command's decoder
 *   PRM_CRE, PRM_INI, PRM_RTR, PRM_RTS
 *             looked at by CREATE_QP, RST2INIT, INIT2RTR, RTR2RTS; in the
 *             other commands it must be zero
 *   PRM_OUT   of an output mailbox
 *   PRM_SUB   a structure
 *
 * PRM_ANY are: qpc.log_ack_req_freq (how often the requester asks for an
 * acknowledgement), mkc.relaxed_ordering_* (allows an order, never asks for
 * one), create_mkey_in.pg_access (both values are in use over a umem).
 */

#ifndef VHCA_PRM_LAYOUT_H_
#define VHCA_PRM_LAYOUT_H_

#define VHCA_PRM_ADS(F)                                         \
    F(ads, fl, 0x000, 0x01, PRM_NO)                             \
    F(ads, free_ar, 0x001, 0x01, PRM_NO)                        \
    F(ads, reserved_at_2, 0x002, 0x0e, PRM_RSV)                 \
    F(ads, pkey_index, 0x010, 0x10, PRM_INI)                    \
    F(ads, plane_index, 0x020, 0x08, PRM_NO)                    \
    F(ads, grh, 0x028, 0x01, PRM_RTR)                           \
    F(ads, mlid, 0x029, 0x07, PRM_RTR)                          \
    F(ads, rlid, 0x030, 0x10, PRM_RTR)                          \
    F(ads, ack_timeout, 0x040, 0x05, PRM_RTS)                   \
    F(ads, reserved_at_45, 0x045, 0x03, PRM_RSV)                \
    F(ads, src_addr_index, 0x048, 0x08, PRM_RTR)                \
    F(ads, reserved_at_50, 0x050, 0x04, PRM_RSV)                \
    F(ads, stat_rate, 0x054, 0x04, PRM_NO)                      \
    F(ads, hop_limit, 0x058, 0x08, PRM_RTR)                     \
    F(ads, reserved_at_60, 0x060, 0x04, PRM_RSV)                \
    F(ads, tclass, 0x064, 0x08, PRM_RTR)                        \
    F(ads, flow_label, 0x06c, 0x14, PRM_RTR)                    \
    F(ads, rgid_rip, 0x080, 0x80, PRM_RTR)                      \
    F(ads, reserved_at_100, 0x100, 0x04, PRM_RSV)               \
    F(ads, f_dscp, 0x104, 0x01, PRM_NO)                         \
    F(ads, f_ecn, 0x105, 0x01, PRM_NO)                          \
    F(ads, reserved_at_106, 0x106, 0x01, PRM_RSV)               \
    F(ads, f_eth_prio, 0x107, 0x01, PRM_NO)                     \
    F(ads, ecn, 0x108, 0x02, PRM_NO)                            \
    F(ads, dscp, 0x10a, 0x06, PRM_RTR)                          \
    F(ads, udp_sport, 0x110, 0x10, PRM_RTR)                     \
    F(ads, dei_cfi, 0x120, 0x01, PRM_NO)                        \
    F(ads, eth_prio, 0x121, 0x03, PRM_RTR)                      \
    F(ads, sl, 0x124, 0x04, PRM_RTR)                            \
    F(ads, vhca_port_num, 0x128, 0x08,                          \
      PRM_INI | PRM_RTR | PRM_RTS)                              \
    F(ads, rmac_47_32, 0x130, 0x10, PRM_RTR)                    \
    F(ads, rmac_31_0, 0x140, 0x20, PRM_RTR)

#define VHCA_PRM_QPC(F)                                           \
    F(qpc, state, 0x000, 0x04, PRM_NO)                            \
    F(qpc, lag_tx_port_affinity, 0x004, 0x04, PRM_NO)             \
    F(qpc, st, 0x008, 0x08, PRM_ALL)                              \
    F(qpc, reserved_at_10, 0x010, 0x02, PRM_RSV)                  \
    F(qpc, isolate_vl_tc, 0x012, 0x01, PRM_NO)                    \
    F(qpc, pm_state, 0x013, 0x02, PRM_ALL)                        \
    F(qpc, reserved_at_15, 0x015, 0x01, PRM_RSV)                  \
    F(qpc, req_e2e_credit_mode, 0x016, 0x02, PRM_NO)              \
    F(qpc, offload_type, 0x018, 0x04, PRM_NO)                     \
    F(qpc, end_padding_mode, 0x01c, 0x02, PRM_NO)                 \
    F(qpc, reserved_at_1e, 0x01e, 0x02, PRM_RSV)                  \
    F(qpc, wq_signature, 0x020, 0x01, PRM_NO)                     \
    F(qpc, block_lb_mc, 0x021, 0x01, PRM_NO)                      \
    F(qpc, atomic_like_write_en, 0x022, 0x01, PRM_NO)             \
    F(qpc, latency_sensitive, 0x023, 0x01, PRM_NO)                \
    F(qpc, reserved_at_24, 0x024, 0x01, PRM_RSV)                  \
    F(qpc, drain_sigerr, 0x025, 0x01, PRM_NO)                     \
    F(qpc, reserved_at_26, 0x026, 0x02, PRM_RSV)                  \
    F(qpc, pd, 0x028, 0x18, PRM_ALL)                              \
    F(qpc, mtu, 0x040, 0x03, PRM_RTR)                             \
    F(qpc, log_msg_max, 0x043, 0x05, PRM_RTR)                     \
    F(qpc, reserved_at_48, 0x048, 0x01, PRM_RSV)                  \
    F(qpc, log_rq_size, 0x049, 0x04, PRM_CRE)                     \
    F(qpc, log_rq_stride, 0x04d, 0x03, PRM_CRE)                   \
    F(qpc, no_sq, 0x050, 0x01, PRM_CRE)                           \
    F(qpc, log_sq_size, 0x051, 0x04, PRM_CRE)                     \
    F(qpc, reserved_at_55, 0x055, 0x01, PRM_RSV)                  \
    F(qpc, retry_mode, 0x056, 0x02, PRM_NO)                       \
    F(qpc, ts_format, 0x058, 0x02, PRM_CRE)                       \
    F(qpc, reserved_at_5a, 0x05a, 0x01, PRM_RSV)                  \
    F(qpc, rlky, 0x05b, 0x01, PRM_NO)                             \
    F(qpc, ulp_stateless_offload_mode, 0x05c, 0x04, PRM_NO)       \
    F(qpc, counter_set_id, 0x060, 0x08, PRM_NO)                   \
    F(qpc, uar_page, 0x068, 0x18, PRM_CRE)                        \
    F(qpc, reserved_at_80, 0x080, 0x08, PRM_RSV)                  \
    F(qpc, user_index, 0x088, 0x18, PRM_CRE)                      \
    F(qpc, reserved_at_a0, 0x0a0, 0x03, PRM_RSV)                  \
    F(qpc, log_page_size, 0x0a3, 0x05, PRM_NO)                    \
    F(qpc, remote_qpn, 0x0a8, 0x18, PRM_RTR)                      \
    F(qpc, primary_address_path, 0x0c0, 0x160, PRM_SUB(ads))      \
    F(qpc, secondary_address_path, 0x220, 0x160, PRM_SUB(ads))    \
    F(qpc, log_ack_req_freq, 0x380, 0x04, PRM_ANY)                \
    F(qpc, reserved_at_384, 0x384, 0x04, PRM_RSV)                 \
    F(qpc, log_sra_max, 0x388, 0x03, PRM_RTS)                     \
    F(qpc, reserved_at_38b, 0x38b, 0x02, PRM_RSV)                 \
    F(qpc, retry_count, 0x38d, 0x03, PRM_RTS)                     \
    F(qpc, rnr_retry, 0x390, 0x03, PRM_RTS)                       \
    F(qpc, reserved_at_393, 0x393, 0x01, PRM_RSV)                 \
    F(qpc, fre, 0x394, 0x01, PRM_NO)                              \
    F(qpc, cur_rnr_retry, 0x395, 0x03, PRM_NO)                    \
    F(qpc, cur_retry_count, 0x398, 0x03, PRM_NO)                  \
    F(qpc, reserved_at_39b, 0x39b, 0x05, PRM_RSV)                 \
    F(qpc, reserved_at_3a0, 0x3a0, 0x20, PRM_RSV)                 \
    F(qpc, reserved_at_3c0, 0x3c0, 0x08, PRM_RSV)                 \
    F(qpc, next_send_psn, 0x3c8, 0x18, PRM_RTS)                   \
    F(qpc, reserved_at_3e0, 0x3e0, 0x03, PRM_RSV)                 \
    F(qpc, log_num_dci_stream_channels, 0x3e3, 0x05, PRM_NO)      \
    F(qpc, cqn_snd, 0x3e8, 0x18, PRM_ALL)                         \
    F(qpc, reserved_at_400, 0x400, 0x03, PRM_RSV)                 \
    F(qpc, log_num_dci_errored_streams, 0x403, 0x05, PRM_NO)      \
    F(qpc, deth_sqpn, 0x408, 0x18, PRM_NO)                        \
    F(qpc, reserved_at_420, 0x420, 0x20, PRM_RSV)                 \
    F(qpc, reserved_at_440, 0x440, 0x08, PRM_RSV)                 \
    F(qpc, last_acked_psn, 0x448, 0x18, PRM_NO)                   \
    F(qpc, reserved_at_460, 0x460, 0x08, PRM_RSV)                 \
    F(qpc, ssn, 0x468, 0x18, PRM_NO)                              \
    F(qpc, reserved_at_480, 0x480, 0x08, PRM_RSV)                 \
    F(qpc, log_rra_max, 0x488, 0x03, PRM_RTR)                     \
    F(qpc, reserved_at_48b, 0x48b, 0x01, PRM_RSV)                 \
    F(qpc, atomic_mode, 0x48c, 0x04, PRM_INI | PRM_RTR | PRM_RTS) \
    F(qpc, rre, 0x490, 0x01, PRM_INI | PRM_RTR | PRM_RTS)         \
    F(qpc, rwe, 0x491, 0x01, PRM_INI | PRM_RTR | PRM_RTS)         \
    F(qpc, rae, 0x492, 0x01, PRM_INI | PRM_RTR | PRM_RTS)         \
    F(qpc, reserved_at_493, 0x493, 0x01, PRM_RSV)                 \
    F(qpc, page_offset, 0x494, 0x06, PRM_NO)                      \
    F(qpc, reserved_at_49a, 0x49a, 0x03, PRM_RSV)                 \
    F(qpc, cd_slave_receive, 0x49d, 0x01, PRM_NO)                 \
    F(qpc, cd_slave_send, 0x49e, 0x01, PRM_NO)                    \
    F(qpc, cd_master, 0x49f, 0x01, PRM_NO)                        \
    F(qpc, reserved_at_4a0, 0x4a0, 0x03, PRM_RSV)                 \
    F(qpc, min_rnr_nak, 0x4a3, 0x05, PRM_RTR | PRM_RTS)           \
    F(qpc, next_rcv_psn, 0x4a8, 0x18, PRM_RTR)                    \
    F(qpc, reserved_at_4c0, 0x4c0, 0x08, PRM_RSV)                 \
    F(qpc, xrcd, 0x4c8, 0x18, PRM_NO)                             \
    F(qpc, reserved_at_4e0, 0x4e0, 0x08, PRM_RSV)                 \
    F(qpc, cqn_rcv, 0x4e8, 0x18, PRM_ALL)                         \
    F(qpc, dbr_addr, 0x500, 0x40, PRM_CRE)                        \
    F(qpc, q_key, 0x540, 0x20, PRM_NO)                            \
    F(qpc, reserved_at_560, 0x560, 0x05, PRM_RSV)                 \
    F(qpc, rq_type, 0x565, 0x03, PRM_CRE)                         \
    F(qpc, srqn_rmpn_xrqn, 0x568, 0x18, PRM_CRE)                  \
    F(qpc, reserved_at_580, 0x580, 0x08, PRM_RSV)                 \
    F(qpc, rmsn, 0x588, 0x18, PRM_NO)                             \
    F(qpc, hw_sq_wqebb_counter, 0x5a0, 0x10, PRM_NO)              \
    F(qpc, sw_sq_wqebb_counter, 0x5b0, 0x10, PRM_NO)              \
    F(qpc, hw_rq_counter, 0x5c0, 0x20, PRM_NO)                    \
    F(qpc, sw_rq_counter, 0x5e0, 0x20, PRM_NO)                    \
    F(qpc, reserved_at_600, 0x600, 0x20, PRM_RSV)                 \
    F(qpc, reserved_at_620, 0x620, 0x0f, PRM_RSV)                 \
    F(qpc, cgs, 0x62f, 0x01, PRM_NO)                              \
    F(qpc, cs_req, 0x630, 0x08, PRM_CRE)                          \
    F(qpc, cs_res, 0x638, 0x08, PRM_CRE)                          \
    F(qpc, dc_access_key, 0x640, 0x40, PRM_NO)                    \
    F(qpc, reserved_at_680, 0x680, 0x03, PRM_RSV)                 \
    F(qpc, dbr_umem_valid, 0x683, 0x01, PRM_KRN)                  \
    F(qpc, reserved_at_684, 0x684, 0x9c, PRM_RSV)                 \
    F(qpc, dbr_umem_id, 0x720, 0x20, PRM_CRE)

#define VHCA_PRM_WQ(F)                                                 \
    F(wq, wq_type, 0x000, 0x04, PRM_ALL)                               \
    F(wq, wq_signature, 0x004, 0x01, PRM_NO)                           \
    F(wq, end_padding_mode, 0x005, 0x02, PRM_NO)                       \
    F(wq, cd_slave, 0x007, 0x01, PRM_NO)                               \
    F(wq, reserved_at_8, 0x008, 0x18, PRM_RSV)                         \
    F(wq, hds_skip_first_sge, 0x020, 0x01, PRM_NO)                     \
    F(wq, log2_hds_buf_size, 0x021, 0x03, PRM_NO)                      \
    F(wq, reserved_at_24, 0x024, 0x07, PRM_RSV)                        \
    F(wq, page_offset, 0x02b, 0x05, PRM_NO)                            \
    F(wq, lwm, 0x030, 0x10, PRM_NO)                                    \
    F(wq, reserved_at_40, 0x040, 0x08, PRM_RSV)                        \
    F(wq, pd, 0x048, 0x18, PRM_ALL)                                    \
    F(wq, reserved_at_60, 0x060, 0x08, PRM_RSV)                        \
    F(wq, uar_page, 0x068, 0x18, PRM_NO)                               \
    F(wq, dbr_addr, 0x080, 0x40, PRM_ALL)                              \
    F(wq, hw_counter, 0x0c0, 0x20, PRM_NO)                             \
    F(wq, sw_counter, 0x0e0, 0x20, PRM_NO)                             \
    F(wq, reserved_at_100, 0x100, 0x0c, PRM_RSV)                       \
    F(wq, log_wq_stride, 0x10c, 0x04, PRM_ALL)                         \
    F(wq, reserved_at_110, 0x110, 0x03, PRM_RSV)                       \
    F(wq, log_wq_pg_sz, 0x113, 0x05, PRM_NO)                           \
    F(wq, reserved_at_118, 0x118, 0x03, PRM_RSV)                       \
    F(wq, log_wq_sz, 0x11b, 0x05, PRM_ALL)                             \
    F(wq, dbr_umem_valid, 0x120, 0x01, PRM_KRN)                        \
    F(wq, wq_umem_valid, 0x121, 0x01, PRM_KRN)                         \
    F(wq, reserved_at_122, 0x122, 0x01, PRM_RSV)                       \
    F(wq, log_hairpin_num_packets, 0x123, 0x05, PRM_NO)                \
    F(wq, reserved_at_128, 0x128, 0x03, PRM_RSV)                       \
    F(wq, log_hairpin_data_sz, 0x12b, 0x05, PRM_NO)                    \
    F(wq, reserved_at_130, 0x130, 0x04, PRM_RSV)                       \
    F(wq, log_wqe_num_of_strides, 0x134, 0x04, PRM_NO)                 \
    F(wq, two_byte_shift_en, 0x138, 0x01, PRM_NO)                      \
    F(wq, reserved_at_139, 0x139, 0x04, PRM_RSV)                       \
    F(wq, log_wqe_stride_size, 0x13d, 0x03, PRM_NO)                    \
    F(wq, dbr_umem_id, 0x140, 0x20, PRM_ALL)                           \
    F(wq, wq_umem_id, 0x160, 0x20, PRM_ALL)                            \
    F(wq, wq_umem_offset, 0x180, 0x40, PRM_ALL)                        \
    F(wq, headers_mkey, 0x1c0, 0x20, PRM_NO)                           \
    F(wq, shampo_enable, 0x1e0, 0x01, PRM_NO)                          \
    F(wq, reserved_at_1e1, 0x1e1, 0x04, PRM_RSV)                       \
    F(wq, log_reservation_size, 0x1e5, 0x03, PRM_NO)                   \
    F(wq, reserved_at_1e8, 0x1e8, 0x05, PRM_RSV)                       \
    F(wq, log_max_num_of_packets_per_reservation, 0x1ed, 0x03, PRM_NO) \
    F(wq, reserved_at_1f0, 0x1f0, 0x06, PRM_RSV)                       \
    F(wq, log_headers_entry_size, 0x1f6, 0x02, PRM_NO)                 \
    F(wq, reserved_at_1f8, 0x1f8, 0x04, PRM_RSV)                       \
    F(wq, log_headers_buffer_entry_num, 0x1fc, 0x04, PRM_NO)           \
    F(wq, reserved_at_200, 0x200, 0x400, PRM_RSV)

#define VHCA_PRM_RMPC(F)                                        \
    F(rmpc, reserved_at_0, 0x000, 0x08, PRM_RSV)                \
    F(rmpc, state, 0x008, 0x04, PRM_ALL)                        \
    F(rmpc, reserved_at_c, 0x00c, 0x14, PRM_RSV)                \
    F(rmpc, basic_cyclic_rcv_wqe, 0x020, 0x01, PRM_ALL)         \
    F(rmpc, reserved_at_21, 0x021, 0x1f, PRM_RSV)               \
    F(rmpc, reserved_at_40, 0x040, 0x140, PRM_RSV)              \
    F(rmpc, wq, 0x180, 0x600, PRM_SUB(wq))

#define VHCA_PRM_MKC(F)                                            \
    F(mkc, reserved_at_0, 0x000, 0x01, PRM_RSV)                    \
    F(mkc, free, 0x001, 0x01, PRM_NO)                              \
    F(mkc, reserved_at_2, 0x002, 0x01, PRM_RSV)                    \
    F(mkc, access_mode_4_2, 0x003, 0x03, PRM_NO)                   \
    F(mkc, reserved_at_6, 0x006, 0x07, PRM_RSV)                    \
    F(mkc, relaxed_ordering_write, 0x00d, 0x01, PRM_ANY)           \
    F(mkc, reserved_at_e, 0x00e, 0x01, PRM_RSV)                    \
    F(mkc, small_fence_on_rdma_read_response, 0x00f, 0x01, PRM_NO) \
    F(mkc, umr_en, 0x010, 0x01, PRM_NO)                            \
    F(mkc, a, 0x011, 0x01, PRM_ALL)                                \
    F(mkc, rw, 0x012, 0x01, PRM_ALL)                               \
    F(mkc, rr, 0x013, 0x01, PRM_ALL)                               \
    F(mkc, lw, 0x014, 0x01, PRM_ALL)                               \
    F(mkc, lr, 0x015, 0x01, PRM_ALL)                               \
    F(mkc, access_mode_1_0, 0x016, 0x02, PRM_ALL)                  \
    F(mkc, reserved_at_18, 0x018, 0x02, PRM_RSV)                   \
    F(mkc, ma_translation_mode, 0x01a, 0x02, PRM_NO)               \
    F(mkc, reserved_at_1c, 0x01c, 0x04, PRM_RSV)                   \
    F(mkc, qpn, 0x020, 0x18, PRM_ALL)                              \
    F(mkc, mkey_7_0, 0x038, 0x08, PRM_ALL)                         \
    F(mkc, reserved_at_40, 0x040, 0x20, PRM_RSV)                   \
    F(mkc, length64, 0x060, 0x01, PRM_NO)                          \
    F(mkc, bsf_en, 0x061, 0x01, PRM_NO)                            \
    F(mkc, sync_umr, 0x062, 0x01, PRM_NO)                          \
    F(mkc, reserved_at_63, 0x063, 0x02, PRM_RSV)                   \
    F(mkc, expected_sigerr_count, 0x065, 0x01, PRM_NO)             \
    F(mkc, reserved_at_66, 0x066, 0x01, PRM_RSV)                   \
    F(mkc, en_rinval, 0x067, 0x01, PRM_NO)                         \
    F(mkc, pd, 0x068, 0x18, PRM_ALL)                               \
    F(mkc, start_addr, 0x080, 0x40, PRM_ALL)                       \
    F(mkc, len, 0x0c0, 0x40, PRM_ALL)                              \
    F(mkc, bsf_octword_size, 0x100, 0x20, PRM_NO)                  \
    F(mkc, reserved_at_120, 0x120, 0x60, PRM_RSV)                  \
    F(mkc, crossing_target_vhca_id, 0x180, 0x10, PRM_NO)           \
    F(mkc, reserved_at_190, 0x190, 0x10, PRM_RSV)                  \
    F(mkc, translations_octword_size, 0x1a0, 0x20, PRM_ALL)        \
    F(mkc, reserved_at_1c0, 0x1c0, 0x19, PRM_RSV)                  \
    F(mkc, relaxed_ordering_read, 0x1d9, 0x01, PRM_ANY)            \
    F(mkc, log_page_size, 0x1da, 0x06, PRM_ALL)                    \
    F(mkc, reserved_at_1e0, 0x1e0, 0x20, PRM_RSV)

#define VHCA_PRM_CQC(F)                                         \
    F(cqc, status, 0x000, 0x04, PRM_NO)                         \
    F(cqc, reserved_at_4, 0x004, 0x02, PRM_RSV)                 \
    F(cqc, dbr_umem_valid, 0x006, 0x01, PRM_KRN)                \
    F(cqc, apu_cq, 0x007, 0x01, PRM_NO)                         \
    F(cqc, cqe_sz, 0x008, 0x03, PRM_ALL)                        \
    F(cqc, cc, 0x00b, 0x01, PRM_NO)                             \
    F(cqc, reserved_at_c, 0x00c, 0x01, PRM_RSV)                 \
    F(cqc, scqe_break_moderation_en, 0x00d, 0x01, PRM_NO)       \
    F(cqc, oi, 0x00e, 0x01, PRM_ALL)                            \
    F(cqc, cq_period_mode, 0x00f, 0x02, PRM_NO)                 \
    F(cqc, cqe_comp_en, 0x011, 0x01, PRM_NO)                    \
    F(cqc, mini_cqe_res_format, 0x012, 0x02, PRM_NO)            \
    F(cqc, st, 0x014, 0x04, PRM_NO)                             \
    F(cqc, reserved_at_18, 0x018, 0x06, PRM_RSV)                \
    F(cqc, cqe_compression_layout, 0x01e, 0x02, PRM_NO)         \
    F(cqc, dbr_umem_id, 0x020, 0x20, PRM_ALL)                   \
    F(cqc, reserved_at_40, 0x040, 0x14, PRM_RSV)                \
    F(cqc, page_offset, 0x054, 0x06, PRM_NO)                    \
    F(cqc, reserved_at_5a, 0x05a, 0x06, PRM_RSV)                \
    F(cqc, reserved_at_60, 0x060, 0x03, PRM_RSV)                \
    F(cqc, log_cq_size, 0x063, 0x05, PRM_ALL)                   \
    F(cqc, uar_page, 0x068, 0x18, PRM_ALL)                      \
    F(cqc, reserved_at_80, 0x080, 0x04, PRM_RSV)                \
    F(cqc, cq_period, 0x084, 0x0c, PRM_NO)                      \
    F(cqc, cq_max_count, 0x090, 0x10, PRM_NO)                   \
    F(cqc, c_eqn_or_apu_element, 0x0a0, 0x20, PRM_ALL)          \
    F(cqc, reserved_at_c0, 0x0c0, 0x03, PRM_RSV)                \
    F(cqc, log_page_size, 0x0c3, 0x05, PRM_NO)                  \
    F(cqc, reserved_at_c8, 0x0c8, 0x18, PRM_RSV)                \
    F(cqc, reserved_at_e0, 0x0e0, 0x20, PRM_RSV)                \
    F(cqc, reserved_at_100, 0x100, 0x08, PRM_RSV)               \
    F(cqc, last_notified_index, 0x108, 0x18, PRM_NO)            \
    F(cqc, reserved_at_120, 0x120, 0x08, PRM_RSV)               \
    F(cqc, last_solicit_index, 0x128, 0x18, PRM_NO)             \
    F(cqc, reserved_at_140, 0x140, 0x08, PRM_RSV)               \
    F(cqc, consumer_counter, 0x148, 0x18, PRM_NO)               \
    F(cqc, reserved_at_160, 0x160, 0x08, PRM_RSV)               \
    F(cqc, producer_counter, 0x168, 0x18, PRM_NO)               \
    F(cqc, reserved_at_180, 0x180, 0x40, PRM_RSV)               \
    F(cqc, dbr_addr, 0x1c0, 0x40, PRM_ALL)

#define VHCA_PRM_CREATE_MKEY_IN(F)                                            \
    F(create_mkey_in, opcode, 0x000, 0x10, PRM_ALL)                           \
    F(create_mkey_in, uid, 0x010, 0x10, PRM_KRN)                              \
    F(create_mkey_in, reserved_at_20, 0x020, 0x10, PRM_RSV)                   \
    F(create_mkey_in, op_mod, 0x030, 0x10, PRM_NO)                            \
    F(create_mkey_in, reserved_at_40, 0x040, 0x20, PRM_RSV)                   \
    F(create_mkey_in, pg_access, 0x060, 0x01, PRM_ANY)                        \
    F(create_mkey_in, mkey_umem_valid, 0x061, 0x01, PRM_KRN)                  \
    F(create_mkey_in, data_direct, 0x062, 0x01, PRM_NO)                       \
    F(create_mkey_in, reserved_at_63, 0x063, 0x1d, PRM_RSV)                   \
    F(create_mkey_in, memory_key_mkey_entry, 0x080, 0x200, PRM_SUB(mkc))      \
    F(create_mkey_in, reserved_at_280, 0x280, 0x80, PRM_RSV)                  \
    F(create_mkey_in, translations_octword_actual_size, 0x300, 0x20, PRM_ALL) \
    F(create_mkey_in, mkey_umem_id, 0x320, 0x20, PRM_ALL)                     \
    F(create_mkey_in, mkey_umem_offset, 0x340, 0x40, PRM_ALL)                 \
    F(create_mkey_in, reserved_at_380, 0x380, 0x500, PRM_RSV)

#define VHCA_PRM_CREATE_CQ_IN(F)                                \
    F(create_cq_in, opcode, 0x000, 0x10, PRM_ALL)               \
    F(create_cq_in, uid, 0x010, 0x10, PRM_KRN)                  \
    F(create_cq_in, reserved_at_20, 0x020, 0x10, PRM_RSV)       \
    F(create_cq_in, op_mod, 0x030, 0x10, PRM_NO)                \
    F(create_cq_in, reserved_at_40, 0x040, 0x40, PRM_RSV)       \
    F(create_cq_in, cq_context, 0x080, 0x200, PRM_SUB(cqc))     \
    F(create_cq_in, cq_umem_offset, 0x280, 0x40, PRM_ALL)       \
    F(create_cq_in, cq_umem_id, 0x2c0, 0x20, PRM_ALL)           \
    F(create_cq_in, cq_umem_valid, 0x2e0, 0x01, PRM_KRN)        \
    F(create_cq_in, reserved_at_2e1, 0x2e1, 0x59f, PRM_RSV)

#define VHCA_PRM_CREATE_RMP_IN(F)                               \
    F(create_rmp_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(create_rmp_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(create_rmp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(create_rmp_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(create_rmp_in, reserved_at_40, 0x040, 0xc0, PRM_RSV)      \
    F(create_rmp_in, ctx, 0x100, 0x780, PRM_SUB(rmpc))

#define VHCA_PRM_CREATE_QP_IN(F)                                \
    F(create_qp_in, opcode, 0x000, 0x10, PRM_ALL)               \
    F(create_qp_in, uid, 0x010, 0x10, PRM_KRN)                  \
    F(create_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)       \
    F(create_qp_in, op_mod, 0x030, 0x10, PRM_NO)                \
    F(create_qp_in, qpc_ext, 0x040, 0x01, PRM_NO)               \
    F(create_qp_in, reserved_at_41, 0x041, 0x07, PRM_RSV)       \
    F(create_qp_in, input_qpn, 0x048, 0x18, PRM_NO)             \
    F(create_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)       \
    F(create_qp_in, opt_param_mask, 0x080, 0x20, PRM_NO)        \
    F(create_qp_in, ece, 0x0a0, 0x20, PRM_NO)                   \
    F(create_qp_in, qpc, 0x0c0, 0x740, PRM_SUB(qpc))            \
    F(create_qp_in, wq_umem_offset, 0x800, 0x40, PRM_ALL)       \
    F(create_qp_in, wq_umem_id, 0x840, 0x20, PRM_ALL)           \
    F(create_qp_in, wq_umem_valid, 0x860, 0x01, PRM_KRN)        \
    F(create_qp_in, reserved_at_861, 0x861, 0x1f, PRM_RSV)

#define VHCA_PRM_RST2INIT_QP_IN(F)                              \
    F(rst2init_qp_in, opcode, 0x000, 0x10, PRM_ALL)             \
    F(rst2init_qp_in, uid, 0x010, 0x10, PRM_KRN)                \
    F(rst2init_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)     \
    F(rst2init_qp_in, op_mod, 0x030, 0x10, PRM_NO)              \
    F(rst2init_qp_in, reserved_at_40, 0x040, 0x08, PRM_RSV)     \
    F(rst2init_qp_in, qpn, 0x048, 0x18, PRM_ALL)                \
    F(rst2init_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)     \
    F(rst2init_qp_in, opt_param_mask, 0x080, 0x20, PRM_ALL)     \
    F(rst2init_qp_in, ece, 0x0a0, 0x20, PRM_NO)                 \
    F(rst2init_qp_in, qpc, 0x0c0, 0x740, PRM_SUB(qpc))          \
    F(rst2init_qp_in, reserved_at_800, 0x800, 0x80, PRM_RSV)

#define VHCA_PRM_INIT2RTR_QP_IN(F)                              \
    F(init2rtr_qp_in, opcode, 0x000, 0x10, PRM_ALL)             \
    F(init2rtr_qp_in, uid, 0x010, 0x10, PRM_KRN)                \
    F(init2rtr_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)     \
    F(init2rtr_qp_in, op_mod, 0x030, 0x10, PRM_NO)              \
    F(init2rtr_qp_in, reserved_at_40, 0x040, 0x08, PRM_RSV)     \
    F(init2rtr_qp_in, qpn, 0x048, 0x18, PRM_ALL)                \
    F(init2rtr_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)     \
    F(init2rtr_qp_in, opt_param_mask, 0x080, 0x20, PRM_ALL)     \
    F(init2rtr_qp_in, ece, 0x0a0, 0x20, PRM_NO)                 \
    F(init2rtr_qp_in, qpc, 0x0c0, 0x740, PRM_SUB(qpc))          \
    F(init2rtr_qp_in, reserved_at_800, 0x800, 0x80, PRM_RSV)

#define VHCA_PRM_RTR2RTS_QP_IN(F)                               \
    F(rtr2rts_qp_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(rtr2rts_qp_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(rtr2rts_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(rtr2rts_qp_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(rtr2rts_qp_in, reserved_at_40, 0x040, 0x08, PRM_RSV)      \
    F(rtr2rts_qp_in, qpn, 0x048, 0x18, PRM_ALL)                 \
    F(rtr2rts_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)      \
    F(rtr2rts_qp_in, opt_param_mask, 0x080, 0x20, PRM_ALL)      \
    F(rtr2rts_qp_in, ece, 0x0a0, 0x20, PRM_NO)                  \
    F(rtr2rts_qp_in, qpc, 0x0c0, 0x740, PRM_SUB(qpc))           \
    F(rtr2rts_qp_in, reserved_at_800, 0x800, 0x80, PRM_RSV)

#define VHCA_PRM_QP_2ERR_IN(F)                                  \
    F(qp_2err_in, opcode, 0x000, 0x10, PRM_ALL)                 \
    F(qp_2err_in, uid, 0x010, 0x10, PRM_KRN)                    \
    F(qp_2err_in, reserved_at_20, 0x020, 0x10, PRM_RSV)         \
    F(qp_2err_in, op_mod, 0x030, 0x10, PRM_NO)                  \
    F(qp_2err_in, reserved_at_40, 0x040, 0x08, PRM_RSV)         \
    F(qp_2err_in, qpn, 0x048, 0x18, PRM_ALL)                    \
    F(qp_2err_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QP_2RST_IN(F)                                  \
    F(qp_2rst_in, opcode, 0x000, 0x10, PRM_ALL)                 \
    F(qp_2rst_in, uid, 0x010, 0x10, PRM_KRN)                    \
    F(qp_2rst_in, reserved_at_20, 0x020, 0x10, PRM_RSV)         \
    F(qp_2rst_in, op_mod, 0x030, 0x10, PRM_NO)                  \
    F(qp_2rst_in, reserved_at_40, 0x040, 0x08, PRM_RSV)         \
    F(qp_2rst_in, qpn, 0x048, 0x18, PRM_ALL)                    \
    F(qp_2rst_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QUERY_QP_IN(F)                                 \
    F(query_qp_in, opcode, 0x000, 0x10, PRM_ALL)                \
    F(query_qp_in, uid, 0x010, 0x10, PRM_KRN)                   \
    F(query_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)        \
    F(query_qp_in, op_mod, 0x030, 0x10, PRM_NO)                 \
    F(query_qp_in, qpc_ext, 0x040, 0x01, PRM_NO)                \
    F(query_qp_in, reserved_at_41, 0x041, 0x07, PRM_RSV)        \
    F(query_qp_in, qpn, 0x048, 0x18, PRM_ALL)                   \
    F(query_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QUERY_MKEY_IN(F)                               \
    F(query_mkey_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(query_mkey_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(query_mkey_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(query_mkey_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(query_mkey_in, reserved_at_40, 0x040, 0x08, PRM_RSV)      \
    F(query_mkey_in, mkey_index, 0x048, 0x18, PRM_ALL)          \
    F(query_mkey_in, pg_access, 0x060, 0x01, PRM_NO)            \
    F(query_mkey_in, reserved_at_61, 0x061, 0x1f, PRM_RSV)

#define VHCA_PRM_DESTROY_QP_IN(F)                               \
    F(destroy_qp_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(destroy_qp_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(destroy_qp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(destroy_qp_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(destroy_qp_in, reserved_at_40, 0x040, 0x08, PRM_RSV)      \
    F(destroy_qp_in, qpn, 0x048, 0x18, PRM_ALL)                 \
    F(destroy_qp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_DESTROY_CQ_IN(F)                               \
    F(destroy_cq_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(destroy_cq_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(destroy_cq_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(destroy_cq_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(destroy_cq_in, reserved_at_40, 0x040, 0x08, PRM_RSV)      \
    F(destroy_cq_in, cqn, 0x048, 0x18, PRM_ALL)                 \
    F(destroy_cq_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_DESTROY_RMP_IN(F)                              \
    F(destroy_rmp_in, opcode, 0x000, 0x10, PRM_ALL)             \
    F(destroy_rmp_in, uid, 0x010, 0x10, PRM_KRN)                \
    F(destroy_rmp_in, reserved_at_20, 0x020, 0x10, PRM_RSV)     \
    F(destroy_rmp_in, op_mod, 0x030, 0x10, PRM_NO)              \
    F(destroy_rmp_in, reserved_at_40, 0x040, 0x08, PRM_RSV)     \
    F(destroy_rmp_in, rmpn, 0x048, 0x18, PRM_ALL)               \
    F(destroy_rmp_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_DESTROY_MKEY_IN(F)                             \
    F(destroy_mkey_in, opcode, 0x000, 0x10, PRM_ALL)            \
    F(destroy_mkey_in, uid, 0x010, 0x10, PRM_KRN)               \
    F(destroy_mkey_in, reserved_at_20, 0x020, 0x10, PRM_RSV)    \
    F(destroy_mkey_in, op_mod, 0x030, 0x10, PRM_NO)             \
    F(destroy_mkey_in, reserved_at_40, 0x040, 0x08, PRM_RSV)    \
    F(destroy_mkey_in, mkey_index, 0x048, 0x18, PRM_ALL)        \
    F(destroy_mkey_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QUERY_HCA_CAP_IN(F)                            \
    F(query_hca_cap_in, opcode, 0x000, 0x10, PRM_ALL)           \
    F(query_hca_cap_in, uid, 0x010, 0x10, PRM_KRN)              \
    F(query_hca_cap_in, reserved_at_20, 0x020, 0x10, PRM_RSV)   \
    F(query_hca_cap_in, op_mod, 0x030, 0x10, PRM_ALL)           \
    F(query_hca_cap_in, other_function, 0x040, 0x01, PRM_NO)    \
    F(query_hca_cap_in, ec_vf_function, 0x041, 0x01, PRM_NO)    \
    F(query_hca_cap_in, reserved_at_42, 0x042, 0x0e, PRM_RSV)   \
    F(query_hca_cap_in, function_id, 0x050, 0x10, PRM_NO)       \
    F(query_hca_cap_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QUERY_LAG_IN(F)                                \
    F(query_lag_in, opcode, 0x000, 0x10, PRM_ALL)               \
    F(query_lag_in, uid, 0x010, 0x10, PRM_KRN)                  \
    F(query_lag_in, reserved_at_20, 0x020, 0x10, PRM_RSV)       \
    F(query_lag_in, op_mod, 0x030, 0x10, PRM_NO)                \
    F(query_lag_in, reserved_at_40, 0x040, 0x40, PRM_RSV)

#define VHCA_PRM_HCA_VPORT_CONTEXT(F)                                        \
    F(hca_vport_context, field_select, 0x000, 0x20, PRM_OUT)                 \
    F(hca_vport_context, reserved_at_20, 0x020, 0xe0, PRM_OUT)               \
    F(hca_vport_context, sm_virt_aware, 0x100, 0x01, PRM_OUT)                \
    F(hca_vport_context, has_smi, 0x101, 0x01, PRM_OUT)                      \
    F(hca_vport_context, has_raw, 0x102, 0x01, PRM_OUT)                      \
    F(hca_vport_context, grh_required, 0x103, 0x01, PRM_OUT)                 \
    F(hca_vport_context, reserved_at_104, 0x104, 0x04, PRM_OUT)              \
    F(hca_vport_context, num_port_plane, 0x108, 0x08, PRM_OUT)               \
    F(hca_vport_context, port_physical_state, 0x110, 0x04, PRM_OUT)          \
    F(hca_vport_context, vport_state_policy, 0x114, 0x04, PRM_OUT)           \
    F(hca_vport_context, port_state, 0x118, 0x04, PRM_OUT)                   \
    F(hca_vport_context, vport_state, 0x11c, 0x04, PRM_OUT)                  \
    F(hca_vport_context, reserved_at_120, 0x120, 0x20, PRM_OUT)              \
    F(hca_vport_context, system_image_guid, 0x140, 0x40, PRM_OUT)            \
    F(hca_vport_context, port_guid, 0x180, 0x40, PRM_OUT)                    \
    F(hca_vport_context, node_guid, 0x1c0, 0x40, PRM_OUT)                    \
    F(hca_vport_context, cap_mask1, 0x200, 0x20, PRM_OUT)                    \
    F(hca_vport_context, cap_mask1_field_select, 0x220, 0x20, PRM_OUT)       \
    F(hca_vport_context, cap_mask2, 0x240, 0x20, PRM_OUT)                    \
    F(hca_vport_context, cap_mask2_field_select, 0x260, 0x20, PRM_OUT)       \
    F(hca_vport_context, reserved_at_280, 0x280, 0x80, PRM_OUT)              \
    F(hca_vport_context, lid, 0x300, 0x10, PRM_OUT)                          \
    F(hca_vport_context, reserved_at_310, 0x310, 0x04, PRM_OUT)              \
    F(hca_vport_context, init_type_reply, 0x314, 0x04, PRM_OUT)              \
    F(hca_vport_context, lmc, 0x318, 0x03, PRM_OUT)                          \
    F(hca_vport_context, subnet_timeout, 0x31b, 0x05, PRM_OUT)               \
    F(hca_vport_context, sm_lid, 0x320, 0x10, PRM_OUT)                       \
    F(hca_vport_context, sm_sl, 0x330, 0x04, PRM_OUT)                        \
    F(hca_vport_context, reserved_at_334, 0x334, 0x0c, PRM_OUT)              \
    F(hca_vport_context, qkey_violation_counter, 0x340, 0x10, PRM_OUT)       \
    F(hca_vport_context, pkey_violation_counter, 0x350, 0x10, PRM_OUT)       \
    F(hca_vport_context, reserved_at_360, 0x360, 0xca0, PRM_OUT)

#define VHCA_PRM_QUERY_HCA_VPORT_CONTEXT_IN(F)                               \
    F(query_hca_vport_context_in, opcode, 0x000, 0x10, PRM_ALL)              \
    F(query_hca_vport_context_in, uid, 0x010, 0x10, PRM_KRN)                 \
    F(query_hca_vport_context_in, reserved_at_20, 0x020, 0x10, PRM_RSV)      \
    F(query_hca_vport_context_in, op_mod, 0x030, 0x10, PRM_NO)               \
    F(query_hca_vport_context_in, other_vport, 0x040, 0x01, PRM_NO)          \
    F(query_hca_vport_context_in, reserved_at_41, 0x041, 0x0b, PRM_RSV)      \
    F(query_hca_vport_context_in, port_num, 0x04c, 0x04, PRM_NO)             \
    F(query_hca_vport_context_in, vport_number, 0x050, 0x10, PRM_NO)         \
    F(query_hca_vport_context_in, reserved_at_60, 0x060, 0x20, PRM_RSV)

#define VHCA_PRM_QUERY_HCA_VPORT_CONTEXT_OUT(F)                              \
    F(query_hca_vport_context_out, status, 0x000, 0x08, PRM_OUT)             \
    F(query_hca_vport_context_out, reserved_at_8, 0x008, 0x18, PRM_OUT)      \
    F(query_hca_vport_context_out, syndrome, 0x020, 0x20, PRM_OUT)           \
    F(query_hca_vport_context_out, reserved_at_40, 0x040, 0x40, PRM_OUT)     \
    F(query_hca_vport_context_out, hca_vport_context, 0x080, 0x1000,         \
      PRM_SUB(hca_vport_context))

#define VHCA_PRM_CREATE_MKEY_OUT(F)                             \
    F(create_mkey_out, status, 0x000, 0x08, PRM_OUT)            \
    F(create_mkey_out, reserved_at_8, 0x008, 0x18, PRM_OUT)     \
    F(create_mkey_out, syndrome, 0x020, 0x20, PRM_OUT)          \
    F(create_mkey_out, reserved_at_40, 0x040, 0x08, PRM_OUT)    \
    F(create_mkey_out, mkey_index, 0x048, 0x18, PRM_OUT)        \
    F(create_mkey_out, reserved_at_60, 0x060, 0x20, PRM_OUT)

#define VHCA_PRM_CREATE_CQ_OUT(F)                               \
    F(create_cq_out, status, 0x000, 0x08, PRM_OUT)              \
    F(create_cq_out, reserved_at_8, 0x008, 0x18, PRM_OUT)       \
    F(create_cq_out, syndrome, 0x020, 0x20, PRM_OUT)            \
    F(create_cq_out, reserved_at_40, 0x040, 0x08, PRM_OUT)      \
    F(create_cq_out, cqn, 0x048, 0x18, PRM_OUT)                 \
    F(create_cq_out, reserved_at_60, 0x060, 0x20, PRM_OUT)

#define VHCA_PRM_CREATE_RMP_OUT(F)                              \
    F(create_rmp_out, status, 0x000, 0x08, PRM_OUT)             \
    F(create_rmp_out, reserved_at_8, 0x008, 0x18, PRM_OUT)      \
    F(create_rmp_out, syndrome, 0x020, 0x20, PRM_OUT)           \
    F(create_rmp_out, reserved_at_40, 0x040, 0x08, PRM_OUT)     \
    F(create_rmp_out, rmpn, 0x048, 0x18, PRM_OUT)               \
    F(create_rmp_out, reserved_at_60, 0x060, 0x20, PRM_OUT)

#define VHCA_PRM_CREATE_QP_OUT(F)                               \
    F(create_qp_out, status, 0x000, 0x08, PRM_OUT)              \
    F(create_qp_out, reserved_at_8, 0x008, 0x18, PRM_OUT)       \
    F(create_qp_out, syndrome, 0x020, 0x20, PRM_OUT)            \
    F(create_qp_out, reserved_at_40, 0x040, 0x08, PRM_OUT)      \
    F(create_qp_out, qpn, 0x048, 0x18, PRM_OUT)                 \
    F(create_qp_out, ece, 0x060, 0x20, PRM_OUT)

#define VHCA_PRM_QUERY_QP_OUT(F)                                \
    F(query_qp_out, status, 0x000, 0x08, PRM_OUT)               \
    F(query_qp_out, reserved_at_8, 0x008, 0x18, PRM_OUT)        \
    F(query_qp_out, syndrome, 0x020, 0x20, PRM_OUT)             \
    F(query_qp_out, reserved_at_40, 0x040, 0x40, PRM_OUT)       \
    F(query_qp_out, opt_param_mask, 0x080, 0x20, PRM_OUT)       \
    F(query_qp_out, ece, 0x0a0, 0x20, PRM_OUT)                  \
    F(query_qp_out, qpc, 0x0c0, 0x740, PRM_SUB(qpc))            \
    F(query_qp_out, reserved_at_800, 0x800, 0x80, PRM_OUT)

#define VHCA_PRM_QUERY_MKEY_OUT(F)                                       \
    F(query_mkey_out, status, 0x000, 0x08, PRM_OUT)                      \
    F(query_mkey_out, reserved_at_8, 0x008, 0x18, PRM_OUT)               \
    F(query_mkey_out, syndrome, 0x020, 0x20, PRM_OUT)                    \
    F(query_mkey_out, reserved_at_40, 0x040, 0x40, PRM_OUT)              \
    F(query_mkey_out, memory_key_mkey_entry, 0x080, 0x200, PRM_SUB(mkc)) \
    F(query_mkey_out, reserved_at_280, 0x280, 0x600, PRM_OUT)            \
    F(query_mkey_out, bsf0_klm0_pas_mtt0_1, 0x880, 0x80, PRM_OUT)        \
    F(query_mkey_out, bsf1_klm1_pas_mtt2_3, 0x900, 0x80, PRM_OUT)

#define VHCA_PRM_QUERY_HCA_CAP_OUT(F)                           \
    F(query_hca_cap_out, status, 0x000, 0x08, PRM_OUT)          \
    F(query_hca_cap_out, reserved_at_8, 0x008, 0x18, PRM_OUT)   \
    F(query_hca_cap_out, syndrome, 0x020, 0x20, PRM_OUT)        \
    F(query_hca_cap_out, reserved_at_40, 0x040, 0x40, PRM_OUT)  \
    F(query_hca_cap_out, capability, 0x080, 0x8000, PRM_OUT)

#define VHCA_PRM_QUERY_LAG_OUT(F)                               \
    F(query_lag_out, status, 0x000, 0x08, PRM_OUT)              \
    F(query_lag_out, reserved_at_8, 0x008, 0x18, PRM_OUT)       \
    F(query_lag_out, syndrome, 0x020, 0x20, PRM_OUT)            \
    F(query_lag_out, ctx, 0x040, 0x40, PRM_SUB(lagc))

#define VHCA_PRM_LAGC(F)                                        \
    F(lagc, fdb_selection_mode, 0x000, 0x01, PRM_OUT)           \
    F(lagc, reserved_at_1, 0x001, 0x14, PRM_OUT)                \
    F(lagc, port_select_mode, 0x015, 0x03, PRM_OUT)             \
    F(lagc, reserved_at_18, 0x018, 0x05, PRM_OUT)               \
    F(lagc, lag_state, 0x01d, 0x03, PRM_OUT)                    \
    F(lagc, reserved_at_20, 0x020, 0x0c, PRM_OUT)               \
    F(lagc, active_port, 0x02c, 0x04, PRM_OUT)                  \
    F(lagc, reserved_at_30, 0x030, 0x04, PRM_OUT)               \
    F(lagc, tx_remap_affinity_2, 0x034, 0x04, PRM_OUT)          \
    F(lagc, reserved_at_38, 0x038, 0x04, PRM_OUT)               \
    F(lagc, tx_remap_affinity_1, 0x03c, 0x04, PRM_OUT)


/*
 * Capability pages: answers of the device, so only what it may set. The rest
 * of a page is zero.
 */
#define VHCA_PRM_CMD_HCA_CAP(F)                                 \
    F(cmd_hca_cap, vhca_id, 0x030, 0x10, PRM_OUT)               \
    F(cmd_hca_cap, log_max_srq_sz, 0x080, 0x08, PRM_OUT)        \
    F(cmd_hca_cap, log_max_qp_sz, 0x088, 0x08, PRM_OUT)         \
    F(cmd_hca_cap, log_max_qp, 0x09b, 0x05, PRM_OUT)            \
    F(cmd_hca_cap, log_max_srq, 0x0ab, 0x05, PRM_OUT)           \
    F(cmd_hca_cap, log_max_cq_sz, 0x0c8, 0x08, PRM_OUT)         \
    F(cmd_hca_cap, log_max_cq, 0x0db, 0x05, PRM_OUT)            \
    F(cmd_hca_cap, log_max_eq_sz, 0x0e0, 0x08, PRM_OUT)         \
    F(cmd_hca_cap, relaxed_ordering_write, 0x0e8, 0x01, PRM_OUT) \
    F(cmd_hca_cap, relaxed_ordering_read_pci_enabled, 0x0e9, 0x01, \
      PRM_OUT)                                                  \
    F(cmd_hca_cap, log_max_mkey, 0x0ea, 0x06, PRM_OUT)          \
    F(cmd_hca_cap, log_max_eq, 0x0fc, 0x04, PRM_OUT)            \
    F(cmd_hca_cap, fixed_buffer_size, 0x108, 0x01, PRM_OUT)     \
    F(cmd_hca_cap, log_max_mrw_sz, 0x109, 0x07, PRM_OUT)        \
    F(cmd_hca_cap, log_max_ra_req_dc, 0x12a, 0x06, PRM_OUT)     \
    F(cmd_hca_cap, log_max_ra_res_dc, 0x13a, 0x06, PRM_OUT)     \
    F(cmd_hca_cap, log_max_ra_req_qp, 0x14a, 0x06, PRM_OUT)     \
    F(cmd_hca_cap, log_max_ra_res_qp, 0x15a, 0x06, PRM_OUT)     \
    F(cmd_hca_cap, gid_table_size, 0x170, 0x10, PRM_OUT)        \
    F(cmd_hca_cap, pkey_table_size, 0x190, 0x10, PRM_OUT)       \
    F(cmd_hca_cap, ib_virt, 0x1a2, 0x01, PRM_OUT)               \
    F(cmd_hca_cap, local_ca_ack_delay, 0x1ab, 0x05, PRM_OUT)    \
    F(cmd_hca_cap, port_type, 0x1b6, 0x02, PRM_OUT)             \
    F(cmd_hca_cap, num_ports, 0x1b8, 0x08, PRM_OUT)             \
    F(cmd_hca_cap, log_max_msg, 0x1c3, 0x05, PRM_OUT)           \
    F(cmd_hca_cap, init2_lag_tx_port_affinity, 0x1f8, 0x01, PRM_OUT) \
    F(cmd_hca_cap, cqe_version, 0x1fc, 0x04, PRM_OUT)           \
    F(cmd_hca_cap, compact_address_vector, 0x200, 0x01, PRM_OUT) \
    F(cmd_hca_cap, umr_modify_atomic_disabled, 0x208, 0x01, PRM_OUT) \
    F(cmd_hca_cap, dct, 0x21a, 0x01, PRM_OUT)                   \
    F(cmd_hca_cap, roce, 0x21d, 0x01, PRM_OUT)                  \
    F(cmd_hca_cap, atomic, 0x21e, 0x01, PRM_OUT)                \
    F(cmd_hca_cap, cq_oi, 0x220, 0x01, PRM_OUT)                 \
    F(cmd_hca_cap, cq_resize, 0x221, 0x01, PRM_OUT)             \
    F(cmd_hca_cap, pg, 0x227, 0x01, PRM_OUT)                    \
    F(cmd_hca_cap, rc, 0x23f, 0x01, PRM_OUT)                    \
    F(cmd_hca_cap, uar_4k, 0x240, 0x01, PRM_OUT)                \
    F(cmd_hca_cap, uar_sz, 0x24a, 0x06, PRM_OUT)                \
    F(cmd_hca_cap, log_pg_sz, 0x258, 0x08, PRM_OUT)             \
    F(cmd_hca_cap, bf, 0x260, 0x01, PRM_OUT)                    \
    F(cmd_hca_cap, log_bf_reg_size, 0x26b, 0x05, PRM_OUT)       \
    F(cmd_hca_cap, num_lag_ports, 0x27c, 0x04, PRM_OUT)         \
    F(cmd_hca_cap, max_wqe_sz_sq, 0x290, 0x10, PRM_OUT)         \
    F(cmd_hca_cap, max_wqe_sz_rq, 0x2b0, 0x10, PRM_OUT)         \
    F(cmd_hca_cap, relaxed_ordering_read, 0x32a, 0x01, PRM_OUT) \
    F(cmd_hca_cap, log_max_pd, 0x32b, 0x05, PRM_OUT)            \
    F(cmd_hca_cap, basic_cyclic_rcv_wqe, 0x380, 0x01, PRM_OUT)  \
    F(cmd_hca_cap, log_max_rmp, 0x383, 0x05, PRM_OUT)           \
    F(cmd_hca_cap, log_max_wq_sz, 0x3db, 0x05, PRM_OUT)         \
    F(cmd_hca_cap, log_max_uctx, 0x463, 0x05, PRM_OUT)          \
    F(cmd_hca_cap, log_max_umem, 0x46b, 0x05, PRM_OUT)          \
    F(cmd_hca_cap, max_num_eqs, 0x470, 0x10, PRM_OUT)           \
    F(cmd_hca_cap, log_uar_page_sz, 0x490, 0x10, PRM_OUT)       \
    F(cmd_hca_cap, num_of_uars_per_page, 0x520, 0x20, PRM_OUT)  \
    F(cmd_hca_cap, native_port_num, 0x608, 0x08, PRM_OUT)

#define VHCA_PRM_ATOMIC_CAPS(F)                                 \
    F(atomic_caps, atomic_req_8B_endianness_mode, 0x040, 0x02, PRM_OUT) \
    F(atomic_caps, atomic_operations, 0x090, 0x10, PRM_OUT)     \
    F(atomic_caps, atomic_size_qp, 0x0b0, 0x10, PRM_OUT)        \
    F(atomic_caps, atomic_size_dc, 0x0d0, 0x10, PRM_OUT)

#define VHCA_PRM_ROCE_CAP(F)                                    \
    F(roce_cap, qp_ts_format, 0x01e, 0x02, PRM_OUT)             \
    F(roce_cap, l3_type, 0x08c, 0x04, PRM_OUT)                  \
    F(roce_cap, roce_version, 0x098, 0x08, PRM_OUT)             \
    F(roce_cap, r_roce_dest_udp_port, 0x0b0, 0x10, PRM_OUT)     \
    F(roce_cap, r_roce_max_src_udp_port, 0x0c0, 0x10, PRM_OUT)  \
    F(roce_cap, r_roce_min_src_udp_port, 0x0d0, 0x10, PRM_OUT)  \
    F(roce_cap, roce_address_table_size, 0x0f0, 0x10, PRM_OUT)

/* S(structure, list, bits, true if the fields fill it without a gap) */
#define VHCA_PRM_STRUCTS(S)                                     \
    S(ads, VHCA_PRM_ADS, 0x160, true)                           \
    S(qpc, VHCA_PRM_QPC, 0x740, true)                           \
    S(wq, VHCA_PRM_WQ, 0x600, true)                             \
    S(rmpc, VHCA_PRM_RMPC, 0x780, true)                         \
    S(mkc, VHCA_PRM_MKC, 0x200, true)                           \
    S(cqc, VHCA_PRM_CQC, 0x200, true)                           \
    S(lagc, VHCA_PRM_LAGC, 0x040, true)                         \
    S(hca_vport_context, VHCA_PRM_HCA_VPORT_CONTEXT, 0x1000, true) \
    S(create_mkey_in, VHCA_PRM_CREATE_MKEY_IN, 0x880, true)     \
    S(create_cq_in, VHCA_PRM_CREATE_CQ_IN, 0x880, true)         \
    S(create_rmp_in, VHCA_PRM_CREATE_RMP_IN, 0x880, true)       \
    S(create_qp_in, VHCA_PRM_CREATE_QP_IN, 0x880, true)         \
    S(rst2init_qp_in, VHCA_PRM_RST2INIT_QP_IN, 0x880, true)     \
    S(init2rtr_qp_in, VHCA_PRM_INIT2RTR_QP_IN, 0x880, true)     \
    S(rtr2rts_qp_in, VHCA_PRM_RTR2RTS_QP_IN, 0x880, true)       \
    S(qp_2err_in, VHCA_PRM_QP_2ERR_IN, 0x080, true)             \
    S(qp_2rst_in, VHCA_PRM_QP_2RST_IN, 0x080, true)             \
    S(query_qp_in, VHCA_PRM_QUERY_QP_IN, 0x080, true)           \
    S(query_mkey_in, VHCA_PRM_QUERY_MKEY_IN, 0x080, true)       \
    S(destroy_qp_in, VHCA_PRM_DESTROY_QP_IN, 0x080, true)       \
    S(destroy_cq_in, VHCA_PRM_DESTROY_CQ_IN, 0x080, true)       \
    S(destroy_rmp_in, VHCA_PRM_DESTROY_RMP_IN, 0x080, true)     \
    S(destroy_mkey_in, VHCA_PRM_DESTROY_MKEY_IN, 0x080, true)   \
    S(query_hca_cap_in, VHCA_PRM_QUERY_HCA_CAP_IN, 0x080, true) \
    S(query_lag_in, VHCA_PRM_QUERY_LAG_IN, 0x080, true)         \
    S(query_hca_vport_context_in, VHCA_PRM_QUERY_HCA_VPORT_CONTEXT_IN, \
      0x080, true)                                              \
    S(create_mkey_out, VHCA_PRM_CREATE_MKEY_OUT, 0x080, true)   \
    S(create_cq_out, VHCA_PRM_CREATE_CQ_OUT, 0x080, true)       \
    S(create_rmp_out, VHCA_PRM_CREATE_RMP_OUT, 0x080, true)     \
    S(create_qp_out, VHCA_PRM_CREATE_QP_OUT, 0x080, true)       \
    S(query_qp_out, VHCA_PRM_QUERY_QP_OUT, 0x880, true)         \
    S(query_mkey_out, VHCA_PRM_QUERY_MKEY_OUT, 0x980, true)     \
    S(query_hca_cap_out, VHCA_PRM_QUERY_HCA_CAP_OUT, 0x8080, true)\
    S(query_lag_out, VHCA_PRM_QUERY_LAG_OUT, 0x080, true)       \
    S(query_hca_vport_context_out, VHCA_PRM_QUERY_HCA_VPORT_CONTEXT_OUT, \
      0x1080, true)                                             \
    S(cmd_hca_cap, VHCA_PRM_CMD_HCA_CAP, 0x8000, false)         \
    S(atomic_caps, VHCA_PRM_ATOMIC_CAPS, 0x8000, false)         \
    S(roce_cap, VHCA_PRM_ROCE_CAP, 0x8000, false)

#endif
