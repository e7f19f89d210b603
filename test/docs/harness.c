/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one example of the documentation: a worker that has no network, and an endpoint that
 * speaks with itself. examples_test.py adds the example. */
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagwire/tagwire.h>

int tw_run_example(tw_worker* worker, tw_ep* ep, tw_cq* cq, tw_addr peer);

static uint16_t receive_nothing(void* context, struct rte_mbuf** packets, uint16_t count) {
    (void)context, (void)packets, (void)count;
    return 0;
}

static uint16_t send_nowhere(void* context, struct rte_mbuf** packets, uint16_t count) {
    (void)context;
    rte_pktmbuf_free_bulk(packets, count);
    return count;
}

static void need(int result, const char* what) {
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, tw_strerror(result), tw_last_error());
    exit(1);
}

int main(int argc, char** argv) {
    if (rte_eal_init(argc, argv) < 0)
        return 1;
    const struct tw_nic nic = {.rx_burst = receive_nothing, .tx_burst = send_nowhere};
    struct tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    need(tw_address_parse("192.0.2.1:4791", &attr.address), "tw_address_parse");
    attr.nic = &nic;
    attr.mac[0] = 2;
    attr.packet_pool =
        rte_pktmbuf_pool_create("example", 4095, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    attr.max_operations = 1024;
    tw_worker* worker;
    tw_av* av;
    tw_cq* cq;
    tw_ep* ep;
    tw_addr peer;
    struct tw_address name;
    need(tw_worker_open(&attr, &worker), "tw_worker_open");
    need(tw_av_open(worker, &av), "tw_av_open");
    need(tw_cq_open(worker, NULL, &cq), "tw_cq_open");
    need(tw_ep_open(worker, NULL, &ep), "tw_ep_open");
    need(tw_ep_bind_av(ep, av), "tw_ep_bind_av");
    need(tw_ep_bind_cq(ep, cq, TW_SEND | TW_RECV), "tw_ep_bind_cq");
    need(tw_ep_enable(ep), "tw_ep_enable");
    need(tw_ep_name(ep, &name), "tw_ep_name");
    need(tw_av_insert(av, &name, &peer), "tw_av_insert");

    need(tw_run_example(worker, ep, cq, peer), "the example");

    struct tw_cq_entry entry;
    need(tw_cq_read(cq, &entry, 1) == -EAGAIN ? 0 : -EBUSY, "a completion was left unread");
    int result;
    for (int turn = 0; (result = tw_ep_close(ep)) == -EBUSY && turn < 100000; ++turn)
        tw_progress(worker);
    need(result, "tw_ep_close");
    need(tw_cq_read(cq, &entry, 1) == -EAGAIN ? 0 : -EBUSY, "an operation was left outstanding");
    need(tw_cq_close(cq), "tw_cq_close");
    need(tw_av_close(av), "tw_av_close");
    need(tw_worker_close(worker), "tw_worker_close");
    return 0;
}
