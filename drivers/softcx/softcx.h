/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softcx, a software ConnectX behind the uverbs ABI: what a program may call.
 * A program needs none of this; it opens mlx5_0 through libibverbs.
 *
 * Environment (softcx-run has an option for each):
 *   SOFTCX_DEVICES=N       number of devices, mlx5_0 ... (1)
 *   SOFTCX_WIRE=SPEC       pair | switch:NAME | netdev:NAMES | pcap:in=FILE,out=FILE |
 *                          loopback (pair for two devices, else loopback)
 *   SOFTCX_MODE=MODE       auto | step | thread | trap (auto: a device thread from 20 ms after the
 *                          first open on, which retires at the first softcx_step)
 *   SOFTCX_MAC=XX:...      MAC address of device 0; device i adds i (random, locally administered)
 *   SOFTCX_NETDEV=NAMES    network devices of mlx5_0, mlx5_1 ...: they lend their MAC address, and
 *                          the devices show a PCI function (none)
 *   SOFTCX_FAULTS=LIST     faults of the wire, such as loss=0.01,reorder=16,seed=7 (none)
 *   SOFTCX_LOG=LEVEL       error | warn | info | debug (warn)
 */
#ifndef SOFTCX_H
#define SOFTCX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Runs every device for a bounded time on the calling thread; returns how many
 * packets moved. Waits for a command (of ibv_*) that another thread is at; returns 0
 * at once when another thread is stepping, and always in thread mode. */
int softcx_step(void);

/* One line for people: "softcx, 2 devices, wire switch:demo, step mode". */
const char* softcx_describe(void);

/* Why no device is shown, or the last one could not be opened; empty: nothing failed. */
const char* softcx_error(void);

/* Faults on demand, for tests. The next WQE of the ring completes in error (and the
 * ring goes to ERR) with `syndrome` (MLX5_CQE_SYNDROME_*). 0, or -ENODEV/-ENOENT/-EINVAL. */
int softcx_inject_wq_error(const char* device, unsigned int wqn, unsigned int syndrome);
int softcx_inject_qp_error(const char* device, unsigned int qpn, unsigned int syndrome);
/* The next CQE finds the CQ full: it is lost, the CQ is in error (IBV_EVENT_CQ_ERR), and
 * the ring that completed fails. */
int softcx_inject_cq_overrun(const char* device, unsigned int cqn);
/* IBV_EVENT_DEVICE_FATAL. Nothing moves any more, armed CQs raise their event, commands
 * that release work and all others return EIO, until the last open file is closed. */
int softcx_inject_device_fatal(const char* device);
int softcx_set_link(const char* device, int up);
/* After `after` more commands one fails with `error` (an errno) and has no effect; commands
 * that release never do. Negative: none fails. Returns 1 if the order before was still
 * waiting, 0 if there was none, or -ENODEV/-EINVAL. */
int softcx_refuse_command(const char* device, int after, int error);

/* How many objects the device has (open files, PDs, MRs, CQs ...), to look for leaks; -1 as
 * unsigned without such a device. */
unsigned long long softcx_objects(const char* device);

/* A counter by name (as in hw_counters), or -1 as unsigned. */
unsigned long long softcx_counter(const char* device, const char* name);

#ifdef __cplusplus
}
#endif
#endif
